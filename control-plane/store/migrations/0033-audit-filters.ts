/** Lets operators filter their audit log. Each index also has the id of the entry, in whose order the log is read. */
export const auditFilters = `
CREATE INDEX audit_log_by_subject ON audit_log (subject);
CREATE INDEX audit_log_by_actor ON audit_log (actor_id);
CREATE INDEX audit_log_by_action ON audit_log (action);
`;
