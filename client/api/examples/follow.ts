// Prints what happens in the organization, each event once, also if this program was stopped in between: it keeps the id of the last
// event in a file. Needs GPURENT_URL, GPURENT_TOKEN (an API key) and FILE. Ctrl-C ends it.
import { readFile, writeFile } from 'node:fs/promises';
import { connect, EventsExpiredError } from 'gpurent-client';

const { GPURENT_URL = 'http://127.0.0.1:8080', GPURENT_TOKEN = '', FILE = 'last-event' } = process.env;
const gpurent = connect({ url: GPURENT_URL, token: GPURENT_TOKEN });
const ending = new AbortController();
process.once('SIGINT', () => ending.abort());

const after = await readFile(FILE, 'utf8').catch(() => '0.0');
try {
  for await (const { id, time, type, subject } of gpurent.events({ after, signal: ending.signal })) {
    console.log(`${time} ${type} ${subject}`);
    await writeFile(FILE, id);
  }
} catch (error) {
  if (!(error instanceof EventsExpiredError)) throw error;
  // It was stopped for so long that some events were deleted.
  await writeFile(FILE, '0.0');
  console.error(error.message);
  process.exitCode = 1;
}
