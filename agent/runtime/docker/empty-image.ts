import { Readable } from 'node:stream';
import { DEADLINE_MS, imageOf, statusOf, type Engine } from './engine.js';

/** An archive without a file. */
const EMPTY_TAR = Buffer.alloc(1024);

/** Makes an image without a file, for containers that need only what the host mounts. `image`: NAME:TAG. */
export async function importEmptyImage(engine: Engine, image: string): Promise<void> {
  const [repo = '', tag = ''] = image.split(':');
  await engine.call('import an image', DEADLINE_MS.create, async (docker) => {
    const done = await docker.importImage(Readable.from([EMPTY_TAR]), { repo, tag });
    for await (const _ of done);
  });
}

/** The same, unless there is one of this name. Answers the name. */
export async function requireEmptyImage(engine: Engine, image: string): Promise<string> {
  try {
    await engine.call('inspect the image', DEADLINE_MS.inspect, (docker) => imageOf(docker, image).inspect());
  } catch (error) {
    if (statusOf(error) !== 404) throw error;
    await importEmptyImage(engine, image);
  }
  return image;
}
