/** The form that NVIDIA's driver gives the UUID of a GPU. Only one spelling of a UUID has it, so a card never counts as two. */
export const GPU_UUID = /^GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
