import { Readable } from 'node:stream';
import { DEADLINE_MS, imageOf, statusOf, type Engine } from '../engine.js';

/** A tar archive without files. */
const EMPTY_TAR = Buffer.alloc(1024);

/** Creates an image without files, for containers that need only the host's mounts. `image`: NAME:TAG. */
export async function importEmptyImage(engine: Engine, image: string): Promise<void> {
  const [repo = '', tag = ''] = image.split(':');
  await engine.call('import an image', DEADLINE_MS.create, async (docker) => {
    const done = await docker.importImage(Readable.from([EMPTY_TAR]), { repo, tag });
    for await (const _ of done);
  });
}

/** Does the same unless an image of this name exists. Returns the name. */
export async function requireEmptyImage(engine: Engine, image: string): Promise<string> {
  try {
    await engine.call('inspect the image', DEADLINE_MS.inspect, (docker) => imageOf(docker, image).inspect());
  } catch (error) {
    if (statusOf(error) !== 404) throw error;
    await importEmptyImage(engine, image);
  }
  return image;
}
