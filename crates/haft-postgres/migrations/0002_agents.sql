-- Standing approvals and conversations of all replicas. Version 1 uses neither table, so it works beside this one.

-- `digest` identifies what an approval covers, with the rule that asked and the tool's definition.
alter table haft.approval
    drop constraint approval_owner_session_server_tool_key,
    add column rule text,
    add column definition text not null default '',
    add column digest text not null unique;

-- A process that continues a conversation holds its lease. Each holder has a greater `fence`, and writes only with it.
-- `since` is the first message after the conversation was last cleared.
create table haft.conversation (
    id uuid primary key,
    owner text not null,
    model text not null,
    title text not null default '',
    created timestamptz not null default now(),
    updated timestamptz not null default now(),
    since integer not null default 0,
    fence bigint not null,
    holder uuid,
    lease timestamptz
);
create index conversation_owner on haft.conversation (owner, updated);
create index conversation_updated on haft.conversation (updated);

-- `body` is the message as a line of a conversation's file has it.
create table haft.message (
    conversation uuid not null references haft.conversation on delete cascade,
    n integer not null,
    at timestamptz not null default now(),
    body text not null,
    primary key (conversation, n)
);

update haft.meta set version = 2;
