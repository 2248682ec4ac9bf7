import { defineConfig } from 'vitest/config';
import config from '../../vitest.config.js';
import { recordingOf } from './recording.ts';

export default defineConfig(recordingOf(config));
