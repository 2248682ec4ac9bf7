import { useEffect, type RefObject } from 'react';

/** Notes on an element that scrolls to the side where more of it is, as `data-more`: `before`, `after`, or both. Styles show it. */
export function useMoreAside(element: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const { current } = element;
    if (!current) return;
    const note = () => (current.dataset['more'] = moreOf(current));
    const observer = new ResizeObserver(note);
    for (const each of [current, ...current.children]) observer.observe(each);
    current.addEventListener('scroll', note, { passive: true });
    return () => {
      observer.disconnect();
      current.removeEventListener('scroll', note);
    };
  }, [element]);
}

function moreOf({ scrollLeft, scrollWidth, clientWidth }: HTMLElement): string {
  // Parts of a pixel are no more.
  const isMore = (pixels: number) => pixels > 1;
  return [
    ...(isMore(scrollLeft) ? ['before'] : []),
    ...(isMore(scrollWidth - clientWidth - scrollLeft) ? ['after'] : []),
  ].join(' ');
}
