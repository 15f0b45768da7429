-- The state that replicas share. Documents and entries are `text`: `jsonb` reorders keys, changes numbers and rejects \u0000.

create table haft.meta (
    one boolean primary key default true check (one),
    version integer not null,
    works_from integer not null
);

create table haft.signing_key (
    id bigint generated always as identity primary key,
    key bytea not null,
    created timestamptz not null default now()
);
-- Two random UUIDs hold 244 random bits.
insert into haft.signing_key (key)
values (uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()));

-- A change of registry, keys or approvals raises its `seq` in the same statement. Replicas poll these rows.
create table haft.topic (name text primary key, seq bigint not null default 0);
insert into haft.topic (name) values ('registry'), ('keys'), ('approvals');

create table haft.registry (
    one boolean primary key default true check (one),
    revision bigint not null,
    token text not null,
    tools text not null,
    servers text not null
);
create table haft.registry_history (
    revision bigint primary key,
    token text not null unique,
    at timestamptz not null default now(),
    by text not null,
    tools text not null,
    servers text not null
);
with first as (
    insert into haft.registry (revision, token, tools, servers)
    values (0, repeat('0', 32), E'{"tools": []}\n', E'{"mcp_servers": {}}\n')
    returning revision, token, tools, servers
)
insert into haft.registry_history (revision, token, by, tools, servers)
select revision, token, 'migration', tools, servers from first;

-- `entry` is the key as the file of keys has it; the other columns serve queries. A revoked key is deleted.
create table haft.api_key (
    name text primary key,
    digest text not null unique,
    scope text not null,
    profile text,
    created timestamptz not null default now(),
    last_used timestamptz,
    entry text not null
);

create table haft.approval (
    id bigint generated always as identity primary key,
    owner text,
    session text,
    server text,
    tool text not null,
    at timestamptz not null default now(),
    unique nulls not distinct (owner, session, server, tool)
);

create sequence haft.replica_number as integer minvalue 1 maxvalue 65535 cycle;
create table haft.replica (
    number integer primary key check (number between 1 and 65535),
    id uuid not null unique,
    address text not null,
    started timestamptz not null default now(),
    seen timestamptz not null default now(),
    version text not null,
    revision text,
    config text not null,
    problem text
);

-- UUIDv7 sorts by time: a range of ids is a range of time, and the primary key is unique over all partitions.
create table haft.call (
    execution_id uuid primary key,
    replica integer not null,
    tool text not null,
    server text,
    caller text,
    session text,
    status text not null,
    code text,
    queued_ms bigint,
    duration_ms bigint,
    entry text not null
) partition by range (execution_id);
create index call_tool on haft.call (tool, execution_id);
create index call_caller on haft.call (caller, execution_id);
create index call_session on haft.call (session, execution_id);
-- Takes rows of a wrong clock.
create table haft.call_default partition of haft.call default;

create table haft.spool (
    id text not null,
    file text not null,
    at bigint not null,
    updated timestamptz not null default now(),
    primary key (id, file)
);

create function haft.first_id_at(at timestamptz) returns uuid language sql immutable strict as $$
    select (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

-- Maintenance. Every replica calls it once a minute; of several at a time, one works. Running it twice is harmless.
create function haft.tidy(retain_days integer) returns boolean language plpgsql as $$
declare
    day date;
    part record;
    part_name text;
    first_id uuid;
    end_id uuid;
begin
    if not pg_try_advisory_xact_lock(hashtext('haft.tidy')) then
        return false;
    end if;
    perform set_config('lock_timeout', '2s', true);
    for day in
        select (now() at time zone 'utc')::date + ahead from generate_series(-1, 2) as ahead
    loop
        part_name := 'call_' || to_char(day, 'YYYYMMDD');
        if to_regclass('haft.' || part_name) is null then
            first_id := haft.first_id_at(day::timestamp at time zone 'utc');
            end_id := haft.first_id_at((day + 1)::timestamp at time zone 'utc');
            execute format('create table haft.%I (like haft.call including all)', part_name);
            execute format(
                'with moved as (delete from haft.call_default where execution_id >= %L and execution_id < %L '
                'returning *) insert into haft.%I select * from moved',
                first_id, end_id, part_name
            );
            execute format(
                'alter table haft.call attach partition haft.%I for values from (%L) to (%L)',
                part_name, first_id, end_id
            );
        end if;
    end loop;
    for part in
        select child.relname as name from pg_inherits
        join pg_class child on child.oid = pg_inherits.inhrelid
        where pg_inherits.inhparent = 'haft.call'::regclass and child.relname ~ '^call_[0-9]{8}$'
    loop
        if to_date(substr(part.name, 6), 'YYYYMMDD') < (now() at time zone 'utc')::date - retain_days then
            execute format('drop table haft.%I', part.name);
        end if;
    end loop;
    delete from haft.call_default
    where execution_id < haft.first_id_at(now() - make_interval(days => retain_days));
    delete from haft.registry_history
    where revision <= (select max(revision) - 1000 from haft.registry_history);
    delete from haft.replica where seen < now() - interval '1 hour';
    delete from haft.spool where updated < now() - make_interval(days => greatest(retain_days, 2));
    return true;
end
$$;
select haft.tidy(30);

insert into haft.meta (version, works_from) values (1, 1);
