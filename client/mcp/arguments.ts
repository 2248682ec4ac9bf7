import { z } from 'zod';

/** The argument that names an instance. */
export const instanceId = z.string().min(1).max(100).describe('The id of the instance, from list_instances');
