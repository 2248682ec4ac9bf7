/** Destroyed instances keep long copies of templates without command and environment, as those do that are destroyed from now on. */
export const abridgedTemplates = `
UPDATE instances SET template_snapshot = json_set(template_snapshot, '$.command', json('[]'), '$.env', json('[]'))
WHERE status = 'destroyed' AND octet_length(template_snapshot) > 8192;
`;
