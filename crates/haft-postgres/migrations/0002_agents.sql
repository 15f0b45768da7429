-- Standing approvals and conversations of all replicas. Version 1 uses neither table, so it works beside this one.

-- `digest` identifies what an approval covers, with the rule that asked and the tool's definition.
alter table haft.approval
    drop constraint approval_owner_session_server_tool_key,
    add column rule text,
    add column definition text not null default '',
    add column digest text not null unique;

update haft.meta set version = 2;
