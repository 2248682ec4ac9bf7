// Rents the cheapest offer, runs a template on it, and destroys it again. Needs GPURENT_URL, GPURENT_TOKEN (an API key) and
// TEMPLATE, the name of a template.
import { ApiError, connect, type Gpurent } from 'gpurent-client';

const { GPURENT_URL = 'http://127.0.0.1:8080', GPURENT_TOKEN = '', TEMPLATE = 'Debian 12' } = process.env;

async function rent(gpurent: Gpurent): Promise<void> {
  const { items: offers } = await gpurent.get('/v1/offers', { params: { query: { sort: 'price_asc' } } });
  const { items: templates } = await gpurent.get('/v1/templates');
  const [offer, template] = [offers[0], templates.find(({ name }) => name === TEMPLATE)];
  if (!offer || !template) throw new Error(offer ? `there is no template ${TEMPLATE}` : 'nothing is free');

  const body = { offer_id: offer.id, template_id: template.id, disk_gb: 10, label: 'example' };
  const { id } = await gpurent.post('/v1/instances', { body });
  const path = { id };
  try {
    // The stream says when its state changes, so nobody has to ask again and again.
    const events = gpurent.events({ after: '0.0', instanceId: id, types: ['instance.status_changed'] });
    for await (const event of events) {
      if (event.type !== 'instance.status_changed' || event.data.status === 'creating') continue;
      console.log(`${event.time} ${event.data.status}`);
      break;
    }
    const instance = await gpurent.get('/v1/instances/{id}', { params: { path } });
    console.log(`ssh -p ${instance.ssh_port} ${instance.ssh_user}@${instance.ssh_host}`);
  } finally {
    const { status } = await gpurent.delete('/v1/instances/{id}', { params: { path } });
    console.log(status);
  }
}

try {
  await rent(connect({ url: GPURENT_URL, token: GPURENT_TOKEN }));
} catch (error) {
  if (!(error instanceof ApiError)) throw error;
  // Each code has its own fields.
  if (error.is('INSUFFICIENT_BALANCE')) console.error(`$${error.body.required_micro / 1e6} are needed`);
  console.error(`${error.code}: ${error.message}`);
  process.exitCode = 1;
}
