/**
 * Knows which hosts have told this process what disks they have, and were not out of its hearing since by its own fault. Of the other
 * hosts, disk time is charged only once they tell it (again).
 */
export class KnownDisks {
  private readonly known = new Set<string>();
  /** Streams that were open when their hosts could not be heard: a message on one shows that its host was there all the time. */
  private readonly doubted = new Map<string, object>();

  /** Tells whether what the host has said of its disks still holds. */
  areKnown(machineId: string): boolean {
    return this.known.has(machineId);
  }

  /** Notes that a hello has listed the host's disks. */
  list(machineId: string): void {
    this.known.add(machineId);
    this.doubted.delete(machineId);
  }

  /** Notes that the control plane could not hear the host, which has `stream` if it is still open. */
  doubt(machineId: string, stream: object | undefined): void {
    if (this.known.delete(machineId) && stream) this.doubted.set(machineId, stream);
  }

  /** Notes a message on a stream. */
  heard(machineId: string, stream: object): void {
    if (this.doubted.get(machineId) === stream) this.list(machineId);
  }
}
