import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { Benchmark } from './benchmark.js';
import { MeasuredAgent } from './measured-agent.js';

const SECONDS = 20;
const LOOK_MS = 100;
const LINE_CHARS = 100;
const MB = 1_000_000;
/** Writes half a MB, at least twenty times a second, for a little longer than is measured. Each line says when, by the host's uptime. */
const WRITER = `
  lines=$(yes "${'x'.repeat(LINE_CHARS - 10)}" | head -n 5000)
  i=0
  while [ $i -lt ${(SECONDS + 5) * 30} ]; do
    read -r up rest </proc/uptime
    echo "$lines" | sed "s/^/$i $up /"
    i=$((i + 1))
    sleep 0.02
  done`;

/** Follows a workload that writes far more than a host can send, and measures how old the newest line is that has arrived. */
export const agentLogs: Benchmark = async () => {
  const measured = await MeasuredAgent.start();
  const id = randomUUID();
  const ages: number[] = [];
  let [newest, sent, notes] = [{ part: 0, at: 0 }, 0, 0];
  measured.onLog = ({ lines }) => {
    for (const { text } of lines) {
      sent += text.length;
      const [, part, at] = /^(\d+) ([\d.]+) x/.exec(text) ?? [];
      if (at === undefined) notes++;
      else newest = { part: Number(part), at: Number(at) };
    }
  };
  try {
    await measured.bringUp(id, true, ['/.gpurent/bin/sh', '-c', WRITER]);
    measured.follow(id);
    const cpuBefore = measured.cpuMs();
    const first = newest.part;
    for (let ms = 0; ms < SECONDS * 1_000; ms += LOOK_MS) {
      await pause(LOOK_MS);
      if (newest.at > 0) ages.push((uptime() - newest.at) * 1_000);
    }
    const written = (newest.part - first) * 5_000 * LINE_CHARS;
    return {
      written_mb_a_second: Math.round((written / MB / SECONDS) * 10) / 10,
      sent_mb_a_second: Math.round((sent / MB / SECONDS) * 100) / 100,
      newest_line_worst_age_ms: Math.round(Math.max(...ages)),
      newest_line_last_age_ms: Math.round(ages.at(-1) ?? NaN),
      notes_of_what_is_left_out: notes,
      agent_cpu_percent: Math.round((measured.cpuMs() - cpuBefore) / SECONDS / 10),
    };
  } finally {
    await measured.destroy(id).catch(() => undefined);
    await measured.stop();
  }
};

function uptime(): number {
  return Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0]);
}
