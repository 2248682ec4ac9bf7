import { expect } from 'vitest';
import { MIB } from '../../shared/bytes.js';
import { advanceUntil } from '../harness/advance-until.js';
import type { AlertCase } from './cases.js';

const fullDatabase: AlertCase = {
  how: 'the disk of the database is full',
  summary: /^The database cannot be written, so nothing can be changed$/,
  also: ['GpurentDiskFull', 'GpurentDiskLow'],
  async provoke(installation) {
    const { controlPlane: test, disks } = installation;
    const isReady = async () => (await test.api.request('GET', '/readyz')).status === 200;
    disks.database.fill();
    const passing = { clock: test.clock, stepMs: 1_000 };
    await advanceUntil('the room within its files to be used up', passing, async () => !(await isReady()));
    expect((await test.operator.request('GET', '/v1/operator/machines')).status).toBe(200);
    return async () => {
      disks.database.makeRoom();
      await installation.pass(1_000);
      expect(await isReady()).toBe(true);
    };
  },
};

const nothingBegins: AlertCase = {
  how: 'too little is left of the disk of the database to begin anything',
  summary: /^The disk of the database is full, so nothing new can begin$/,
  also: ['GpurentDiskLow'],
  async provoke(installation) {
    const { controlPlane: test, disks } = installation;
    disks.database.fillUpTo(7 * MIB);
    await installation.pass(1_000);
    const template = { name: 'T', image: 't:1' };
    const tried = () => test.operator.request('POST', '/v1/operator/templates', template);
    expect((await tried()).status).toBe(503);
    return async () => {
      disks.database.makeRoom();
      await installation.pass(1_000);
      expect((await tried()).status).toBe(201);
    };
  },
};

const fewBytes: AlertCase = {
  how: 'little is left of the disk of the database',
  summary: /^The disk of the database is nearly full: [5-9]\.\d+% are free$/,
  async provoke({ disks: { database } }) {
    database.fillUpTo(12 * MIB);
    return async () => database.makeRoom();
  },
};

/** By alert: those of the disk of the database. */
export const diskCases: Readonly<Record<string, readonly AlertCase[]>> = {
  GpurentNotReady: [fullDatabase],
  GpurentDiskFull: [nothingBegins],
  GpurentDiskLow: [fewBytes],
};
