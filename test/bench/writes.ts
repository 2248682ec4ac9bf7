import type { ApiClient, InstanceBody } from '../harness/api-client.js';
import type { Benchmark } from './benchmark.js';
import { CREDIT_MICRO, foundBusyMarket, type BusyMarket } from './busy-market.js';

const MACHINES = 25;
const CONNECTIONS = 50;
const WARM_UP = 500;
const DEPLOYS = 2_000;

/**
 * Deploys and destroys instances on fake hosts with 50 connections: processor time and durable commits of the control plane for each
 * write, with everything that it brings about (the command, the host's answer, the end of the metering).
 */
export const writes: Benchmark = async () => {
  const market = await foundBusyMarket(MACHINES);
  try {
    const names = Array.from({ length: CONNECTIONS }, (_, index) => `renter-${index}@example.com`);
    const { controlPlane } = market;
    const renters = await Promise.all(names.map((email) => controlPlane.signUp(email, CREDIT_MICRO)));
    const clients = renters.map(({ token }) => controlPlane.measured(token));
    await churn(market, clients, WARM_UP);
    const [cpu, commits] = [market.controlPlane.cpuMs(), await commitsOf(market)];
    const began = performance.now();
    await churn(market, clients, DEPLOYS);
    const seconds = (performance.now() - began) / 1_000;
    const count = 2 * DEPLOYS;
    return {
      'a write, us': Math.round(((market.controlPlane.cpuMs() - cpu) / count) * 1_000),
      'a write, commits': Math.round((((await commitsOf(market)) - commits) / count) * 100) / 100,
      'writes a second': Math.round(count / seconds),
    };
  } finally {
    await market.stop();
  }
};

/** Deploys and destroys that many instances, some at once. */
async function churn(
  { offers, templateId }: BusyMarket,
  clients: readonly ApiClient[],
  deploys: number,
): Promise<void> {
  let left = deploys;
  const work = async (renter: ApiClient, index: number) => {
    const body = { offer_id: offers[index % offers.length], template_id: templateId, disk_gb: 10 };
    while (left-- > 0) {
      const { id } = await renter.post<InstanceBody>('/v1/instances', body);
      await renter.delete(`/v1/instances/${id}`);
    }
  };
  await Promise.all(clients.map(work));
}

async function commitsOf({ controlPlane }: BusyMarket): Promise<number> {
  const text = await controlPlane.connect().get('/metrics', { parseAs: 'text' });
  return Number(/^gpurent_database_commits_total (\d+)/m.exec(text)?.[1]);
}
