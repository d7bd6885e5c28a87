/* The client package of Galley: config/EMBEDDING.md. */
import type * as Y from "yjs";
import type { Awareness } from "y-protocols/awareness";
/** Ends of a socket and failed requests as one typed error, with the remedy. */
/** `later`: the same may succeed by itself; `after sign-in`: with another token; `never`: not without a change. */
export type Retry = "never" | "later" | "after sign-in";
/**
 * `reconnects`: the session does so by itself. `holder`: of a taken seat, `you` if it is another session of
 * the same user. `retryAfter`: in ms, 0 if the server does not know.
 */
export type Remedy = {
    retry: Retry;
    reconnects?: boolean;
    holder?: {
        name: string;
        since: string;
        you?: boolean;
    };
    retryAfter?: number;
};
/** `code`: of the close, or the status of a response, 0 without one; `reason`: of the close, or the name of the problem. */
export interface GalleyError extends Readonly<Remedy> {
    readonly code: number;
    readonly reason: string;
}
export declare class GalleyError extends Error {
    constructor(code: number, reason: string, remedy: Remedy);
}
/** Reviews and suggestions of a link by REST. The server requires that the caller holds the seat for a change. */
export type User = {
    id: string;
    name: string;
};
export type Anchor = {
    state: "exact" | "edited" | "moved" | "orphaned";
    start: number;
    end: number;
    quote: string;
    relative?: {
        start: string;
        end: string;
    };
};
export type Reply = {
    id: string;
    author: User;
    body: string;
    created_at: string;
    edited_at: string | null;
};
export type Review = {
    id: string;
    author: User;
    kind: "comment" | "suggestion" | "summary";
    anchor: Anchor | null;
    body: string;
    suggestion: string | null;
    parts: {
        anchor: Anchor;
        text: string;
    }[];
    replies: Reply[];
    version: number;
    status: "open" | "accepted" | "rejected" | "resolved";
    created_at: string;
    updated_at: string;
};
/** Offsets in UTF-16 units, or relative positions of Yjs in base64. */
type Position = number | string;
export type Part = {
    at: Position;
    text: string;
} | {
    start: Position;
    end: Position;
    quote: string;
    text: string;
};
/** `id`: 16 to 64 of `A–Z a–z 0–9 _ -`, unguessable; `version`: as read, `null` for a new one. */
export type Suggestion = {
    id: string;
    version: number | null;
    parts: Part[];
    body?: string;
};
export type Outcome = {
    id: string | null;
    state: "kept" | "withdrawn" | "refused";
    version?: number;
    reason?: string;
};
export type Decision = {
    id: string | null;
    done: string[];
    skipped: {
        id: string;
        reason: string;
    }[];
    undo_until: string | null;
};
/** A review in the version that the caller has read. */
export type Read = {
    id: string;
    version: number;
};
export declare class Reviews {
    #private;
    /** @param session `link` is the address of the share link in the API */
    constructor(session: {
        link: string;
        text: Y.Text;
        token: () => Promise<string>;
    });
    list(): Promise<Review[]>;
    /** A comment, or a suggestion of other words; `range: null` is a remark on the whole text. */
    create(range: {
        start: number;
        end: number;
    } | null, review: {
        body?: string;
        suggestion?: string;
    }): Promise<Review>;
    /** Stores and withdraws suggestions of the reviewer, each by itself. @returns in the order of the batch */
    suggest(put: Suggestion[], withdraw?: Read[]): Promise<Outcome[]>;
    /** The writer decides suggestions. */
    decide(decision: "accept" | "reject", reviews: Read[]): Promise<Decision>;
    /** Any route below the share link. Throws a `GalleyError`. @returns the JSON of the response, or `null` */
    request(method: string, path: string, body?: object, version?: number): Promise<any>;
}
/** One seat in a host's own editor, on top of the `WebsocketProvider` of `y-websocket`, which the host brings. */
/** `uncertain`: the server rejects edits until it has renewed the lease. */
export type State = "closed" | "opening" | "waiting" | "open" | "uncertain";
/** `event` is the name; the fields are those of the protocol. */
export type ServerEvent = {
    event: string;
    [field: string]: any;
};
/** The values for listeners; `closed` is each end of a socket, also if the session reconnects. */
export type Events = {
    event: ServerEvent;
    state: State;
    saved: boolean;
    closed: GalleyError;
};
/** The part of a `WebsocketProvider` of y-websocket 3.1 that a session uses. */
export type Provider = {
    ws: WebSocket | null;
    params: Record<string, string>;
    protocols: string[];
    awareness: Awareness;
    synced: boolean;
    messageHandlers: ((...message: any[]) => void)[];
    connect(): void;
    disconnect(): void;
    destroy(): void;
    on(name: string, listener: (value: any) => void): unknown;
};
/**
 * `galley` is the origin of the server. `token` returns a new token of the user from the host's backend: a session
 * calls it at its start and a minute before each end. With `wait`, up to 300 s, a claim of a taken seat is queued.
 */
export type Options = {
    galley: string;
    link: string;
    role: "writer" | "reviewer";
    token: () => string | Promise<string>;
    doc: Y.Doc;
    WebsocketProvider: new (url: string, room: string, doc: any, options: object) => Provider;
    wait?: number;
};
export declare class Session {
    #private;
    readonly text: Y.Text;
    readonly provider: Provider;
    readonly reviews: Reviews;
    /** For the editor: a reviewer's edit ends the session, because the replica no longer equals the document. */
    readonly editable: boolean;
    state: State;
    /** All edits of this replica survive any crash of the server. */
    saved: boolean;
    constructor({ galley, link, role, token, doc, WebsocketProvider, wait }: Options);
    /** @returns removes the listener */
    on<K extends keyof Events>(name: K, listener: (value: Events[K]) => void): () => void;
    /**
     * Claims the seat, also again after a close. Rejects with a `GalleyError` when the session does not reconnect.
     *
     * @param options `takeover`: ends another session of the same user
     */
    open({ takeover }?: {
        takeover?: boolean;
    }): Promise<this>;
    /** Leaves the seat for good. The document stays with the host. */
    close(): void;
}
