// Prints every charge and payment of the organization, and their sum: the list is read page by page. Needs GPURENT_URL and
// GPURENT_TOKEN (an API key).
import { connect } from 'gpurent-client';

const { GPURENT_URL = 'http://127.0.0.1:8080', GPURENT_TOKEN = '' } = process.env;
const gpurent = connect({ url: GPURENT_URL, token: GPURENT_TOKEN });

let sumMicro = 0;
for await (const { created_at, kind, amount_micro } of gpurent.items('/v1/billing/transactions')) {
  sumMicro += amount_micro;
  console.log(`${created_at}  ${kind.padEnd(10)}  ${(amount_micro / 1e6).toFixed(6)}`);
}
console.log(`balance ${(sumMicro / 1e6).toFixed(6)}`);
