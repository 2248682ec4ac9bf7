/** Paths of pages that answers of the API name. */
export const DEVICE_PAGE = '/device';
