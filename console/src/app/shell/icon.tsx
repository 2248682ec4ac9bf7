const PATHS = {
  overview: 'M3 17V9h3.500v8zM8.250 17V4h3.500v13zM13.500 17v-6H17v6z',
  machines: 'M3 3h14v14H3zM7 7h6v6H7z',
  market: 'M3 8l2-4h10l2 4M3 8v8h14V8M3 8h14M8 16v-4h4v4',
  instances: 'M3 4h14v5H3zM3 11h14v5H3zM6 6.5h.01M6 13.5h.01',
  templates: 'M4 3h8l4 4v10H4zM12 3v4h4M7 11h6M7 14h4',
  billing: 'M3 5h14v10H3zM3 8.5h14M6 12h3',
  team: 'M7.5 9a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM3 16c0-3 2-4.5 4.5-4.5S12 13 12 16M13 9a2 2 0 1 0 0-4M14 11.5c2 .3 3 2 3 4.5',
  keys: 'M7 13.5a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM10.500 10H18v3M15 10v2.500',
  webhooks:
    'M10 8.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM5 17a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM15 17a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM9 8.500L6 12M11 8.500l3 3.500M7.500 14.500h5',
  account: 'M10 9.5a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM4 17c0-3.500 2.500-5 6-5s6 1.500 6 5',
} as const;

export type IconName = keyof typeof PATHS;

/** A small drawing beside a word. */
export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      viewBox="0 0 20 20"
      width="20"
      height="20"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      aria-hidden="true"
    >
      <path d={PATHS[name]} strokeLinecap="round" strokeLinejoin="round" />
    </svg>
  );
}
