/**
 * The requests of the page and their answers: `node static/vendor/build.mjs` makes this file of the OpenAPI document.
 */

export interface paths {
  "/api/auth": {
    get: operations["entry"];
  };
  "/api/auth/leave": {
    post: operations["leave"];
  };
  "/api/me/sessions": {
    delete: operations["signOutEverywhere"];
  };
  "/api/users/{id}/sessions": {
    delete: operations["revokeSessions"];
  };
  "/api/auth/session": {
    post: operations["exchangeSession"];
  };
  "/api/auth/guest": {
    post: operations["enterAsGuest"];
  };
  "/api/me": {
    get: operations["me"];
    delete: operations["deleteMe"];
    patch: operations["changeMe"];
  };
  "/api/auth/oidc/start": {
    get: operations["startSignIn"];
  };
  "/api/auth/oidc/callback": {
    get: operations["completeSignIn"];
  };
  "/api/auth/oidc/sign-out": {
    get: operations["endProviderSession"];
  };
  "/api/auth/transfer": {
    post: operations["enterByCode"];
  };
  "/api/me/transfer": {
    post: operations["createCode"];
  };
  "/api/users/{id}": {
    delete: operations["deleteUser"];
  };
  "/api/users/{id}/export": {
    get: operations["exportUser"];
  };
  "/api/me/export": {
    get: operations["exportMe"];
  };
  "/api/user-deletions/{receipt}": {
    get: operations["getUserDeletion"];
  };
  "/api/me/reminders": {
    get: operations["reminders"];
    put: operations["setReminders"];
  };
  "/api/documents": {
    get: operations["listDocuments"];
    post: operations["createDocument"];
  };
  "/api/documents/by-external-id/{external_id}": {
    put: operations["findOrCreateDocument"];
  };
  "/api/documents/{id}": {
    get: operations["getDocument"];
    delete: operations["deleteDocument"];
    patch: operations["renameDocument"];
  };
  "/api/documents/{id}/restore": {
    post: operations["restoreDocument"];
  };
  "/api/documents/{id}/text": {
    get: operations["documentText"];
    put: operations["replaceText"];
  };
  "/api/documents/{id}/sections": {
    get: operations["listSections"];
    put: operations["setSections"];
  };
  "/api/documents/import": {
    post: operations["importDocument"];
  };
  "/api/share-links/{id}/export": {
    get: operations["exportDocument"];
  };
  "/api/export-formats": {
    get: operations["listExportFormats"];
  };
  "/api/documents/{id}/versions": {
    get: operations["listVersions"];
    post: operations["nameVersion"];
  };
  "/api/documents/{id}/versions/{vid}": {
    get: operations["getVersion"];
  };
  "/api/documents/{id}/versions/{vid}/diff": {
    get: operations["diffVersion"];
  };
  "/api/documents/{id}/versions/{vid}/restore": {
    post: operations["restoreVersion"];
  };
  "/api/documents/{id}/share-link": {
    post: operations["shareDocument"];
  };
  "/api/share-links": {
    get: operations["listShareLinks"];
  };
  "/api/share-links/{id}": {
    get: operations["showShareLink"];
    delete: operations["revokeShareLink"];
  };
  "/api/share-links/{id}/join": {
    post: operations["joinShareLink"];
  };
  "/api/share-links/{id}/invite": {
    post: operations["renewInvite"];
  };
  "/api/share-links/{id}/invite/check": {
    post: operations["checkInvite"];
  };
  "/api/share-links/{id}/reviewer": {
    put: operations["replaceReviewer"];
    delete: operations["removeReviewer"];
  };
  "/api/share-links/{id}/membership": {
    delete: operations["leaveShareLink"];
  };
  "/api/me/address": {
    get: operations["address"];
    put: operations["setHandle"];
  };
  "/api/me/address/renew": {
    post: operations["renewAddress"];
  };
  "/api/people/find": {
    post: operations["findPerson"];
  };
  "/api/partners": {
    get: operations["listPartners"];
  };
  "/api/partners/{user_id}": {
    delete: operations["removePartner"];
  };
  "/api/review-requests": {
    get: operations["listRequests"];
    post: operations["sendRequest"];
  };
  "/api/review-requests/{id}": {
    get: operations["showRequest"];
  };
  "/api/review-requests/{id}/accept": {
    post: operations["acceptRequest"];
  };
  "/api/review-requests/decline-all": {
    post: operations["declineAllRequests"];
  };
  "/api/review-requests/{id}/decline": {
    post: operations["declineRequest"];
  };
  "/api/review-requests/{id}/withdraw": {
    post: operations["withdrawRequest"];
  };
  "/api/review-offers": {
    get: operations["listOffers"];
    post: operations["createOffer"];
  };
  "/api/review-offers/{id}": {
    get: operations["getOffer"];
  };
  "/api/review-offers/{id}/close": {
    post: operations["closeOffer"];
  };
  "/api/review-offers/{id}/claims": {
    get: operations["listOfferClaims"];
    post: operations["claimOffer"];
  };
  "/api/review-offers/{id}/claims/{cid}": {
    delete: operations["endOfferClaim"];
  };
  "/api/review-offers/{id}/claims/{cid}/accept": {
    post: operations["acceptOfferClaim"];
  };
  "/api/share-links/{id}/reviews": {
    get: operations["listReviews"];
    post: operations["createReview"];
  };
  "/api/share-links/{id}/reviews/{rid}": {
    get: operations["showReview"];
    delete: operations["deleteReview"];
    patch: operations["editReview"];
  };
  "/api/share-links/{id}/reviews/{rid}/replies": {
    post: operations["replyToReview"];
  };
  "/api/share-links/{id}/reviews/{rid}/replies/{reply}": {
    delete: operations["deleteReply"];
    patch: operations["editReply"];
  };
  "/api/share-links/{id}/reviews/{rid}/accept": {
    post: operations["acceptReview"];
  };
  "/api/share-links/{id}/reviews/{rid}/reject": {
    post: operations["rejectReview"];
  };
  "/api/share-links/{id}/reviews/{rid}/resolve": {
    post: operations["resolveReview"];
  };
  "/api/share-links/{id}/reviews/{rid}/reopen": {
    post: operations["reopenReview"];
  };
  "/api/share-links/{id}/suggestions": {
    post: operations["suggest"];
  };
  "/api/share-links/{id}/decisions": {
    post: operations["decideReviews"];
  };
  "/api/share-links/{id}/decisions/{did}/undo": {
    post: operations["undoDecision"];
  };
  "/api/share-links/{id}/seen": {
    put: operations["markSeen"];
  };
  "/api/share-links/{id}/turn": {
    post: operations["passTurn"];
  };
  "/ws/share-links/{id}/{role}": {
    get: operations["connect"];
  };
  "/api/push-key": {
    get: operations["pushKey"];
  };
  "/api/push-subscriptions": {
    get: operations["listPushSubscriptions"];
    post: operations["subscribe"];
  };
  "/api/push-subscriptions/{id}": {
    delete: operations["unsubscribe"];
  };
  "/api/admin/sessions": {
    get: operations["listSessions"];
  };
  "/api/admin/sessions/{session_id}": {
    get: operations["explainSession"];
    delete: operations["endSession"];
  };
  "/api/admin/share-links/{id}": {
    delete: operations["revokeShareLinkAsAdmin"];
  };
  "/api/admin/series": {
    get: operations["readSeries"];
  };
  "/api/admin/audit": {
    get: operations["listAudit"];
  };
  "/api/admin/locks": {
    get: operations["listLocks"];
  };
  "/api/admin/jobs": {
    get: operations["listJobs"];
  };
  "/api/admin/webhooks": {
    get: operations["listWebhooks"];
  };
  "/api/admin/webhooks/replay": {
    post: operations["replayWebhooks"];
  };
  "/api/admin/webhooks/{id}/replay": {
    post: operations["replayWebhook"];
  };
  "/healthz": {
    get: operations["alive"];
  };
  "/readyz": {
    get: operations["ready"];
  };
  "/metrics": {
    get: operations["metrics"];
  };
  "/openapi.json": {
    get: operations["openapi"];
  };
}
export type webhooks = Record<string, never>;
export interface components {
  schemas: {
    Problem: {
      type: "/problems/already-claimed" | "/problems/already-partners" | "/problems/already-undone" | "/problems/already-writer" | "/problems/anchor-mismatch" | "/problems/anchor-moved" | "/problems/bearer-required" | "/problems/claim-accepted" | "/problems/claim-limit" | "/problems/deletion-running" | "/problems/document-damaged" | "/problems/document-reset" | "/problems/document-too-large" | "/problems/export-too-large" | "/problems/external-id-taken" | "/problems/foreign-origin" | "/problems/format-not-available" | "/problems/guest-limit" | "/problems/guest-session" | "/problems/guests-off" | "/problems/handle-taken" | "/problems/import-format" | "/problems/import-too-large" | "/problems/import-unreadable" | "/problems/in-bin" | "/problems/internal" | "/problems/invalid" | "/problems/invalid-handle" | "/problems/invalid-reminders" | "/problems/invalid-subscription" | "/problems/lock-wait-timeout" | "/problems/malformed" | "/problems/method-not-allowed" | "/problems/moved" | "/problems/name-from-host" | "/problems/no-guest-requests" | "/problems/no-reviewer" | "/problems/not-a-guest" | "/problems/not-a-partner" | "/problems/not-admin" | "/problems/not-author" | "/problems/not-for-servers" | "/problems/not-found" | "/problems/not-in-this-state" | "/problems/not-ready" | "/problems/not-saved" | "/problems/not-the-owner" | "/problems/not-the-receiver" | "/problems/not-the-reviewer" | "/problems/not-the-sender" | "/problems/not-the-writer" | "/problems/offer-closed" | "/problems/own-offer" | "/problems/own-self" | "/problems/push-off" | "/problems/quota-spent" | "/problems/request-already-received" | "/problems/request-already-sent" | "/problems/request-limit" | "/problems/request-not-pending" | "/problems/reviewer-exists" | "/problems/room-full" | "/problems/scope-missing" | "/problems/seat-held" | "/problems/seat-not-held" | "/problems/section-not-found" | "/problems/server-token-required" | "/problems/sold-out" | "/problems/storage-full" | "/problems/text-changing" | "/problems/text-too-costly" | "/problems/too-large" | "/problems/too-many" | "/problems/too-many-requests" | "/problems/transfer-code-invalid" | "/problems/unauthenticated" | "/problems/unavailable" | "/problems/undo-conflict" | "/problems/undo-expired" | "/problems/unknown-format" | "/problems/unknown-user" | "/problems/unsaved-full" | "/problems/unsupported-media-type" | "/problems/user-deleted" | "/problems/version-mismatch" | "/problems/wrong-host" | "/problems/wrong-invite";
      title: string;
      status: number;
      detail?: string;
      scope?: string;
      request_id?: string;
      down?: string[];
      deleted?: {
        by: components["schemas"]["User"];
        at: string;
        purge_at: string;
      };
      state?: string;
      field?: string;
      encoding?: string;
      remedy?: string;
      age_ms?: number;
      reviews?: components["schemas"]["Id"][];
      id?: components["schemas"]["Id"];
    };
    ShareLinkWithInvite: {
      id: components["schemas"]["Id"];
      document_id: components["schemas"]["Id"];
      title: string;
      writer: components["schemas"]["User"];
      reviewer: components["schemas"]["User"] | null;
      reviewer_since: components["schemas"]["ReviewerSince"];
      invited_at: components["schemas"]["InvitedAt"];
      attempts: components["schemas"]["Attempts"];
      invite: {
        token: string;
        url: string;
      };
    };
    ShareLink: {
      id: components["schemas"]["Id"];
      document_id: components["schemas"]["Id"];
      title: string;
      writer: components["schemas"]["User"];
      reviewer: components["schemas"]["User"] | null;
      seen: number;
      reviews: components["schemas"]["ReviewCounts"];
      turn: components["schemas"]["Turn"] | null;
      reviewer_since?: components["schemas"]["ReviewerSince"];
      invited_at?: components["schemas"]["InvitedAt"];
      attempts?: components["schemas"]["Attempts"];
      seats: components["schemas"]["Seats"];
    };
    ReviewerSince: string | null;
    InvitedAt: string;
    Attempts: {
      user: components["schemas"]["User"];
      at: string;
    }[];
    AcceptedRequest: {
      request: components["schemas"]["ReviewRequest"];
      partner: components["schemas"]["User"];
      share_link_id: components["schemas"]["Id"] | null;
      share_link: "joined" | "reviewer-exists" | "document-gone" | null;
    };
    Act: {
      id: number;
      at: string;
      by: {
        kind: "admin";
      } | {
        kind: "user";
        id: components["schemas"]["Id"];
      } | {
        kind: "server";
        id: components["schemas"]["Id"];
      };
      user: components["schemas"]["Id"] | null;
      action: string;
      target: string;
      status: number | null;
      request_id: string;
      peer: string;
    };
    Address: {
      handle: string | null;
      link: {
        token: string;
        url: string;
      };
    };
    Anchor: {
      state: "exact" | "edited" | "moved" | "orphaned";
      start: number;
      end: number;
      quote: string;
      prefix: string;
      suffix: string;
      relative?: {
        start: string;
        end: string;
      };
    };
    AuditPage: {
      audit: components["schemas"]["Act"][];
      next_cursor: string | null;
    };
    Author: {
      id: components["schemas"]["Id"];
      name: string | null;
    };
    Code: {
      code: string;
    };
    CountUnit: "spaces" | "no-spaces" | "utf8" | "euc-kr" | "neis" | "words";
    Decided: {
      id: components["schemas"]["Id"];
      by: components["schemas"]["Author"];
      at: string;
      undo_until: string;
    };
    DecisionMade: {
      id: components["schemas"]["Id"] | null;
      decision: "accept" | "reject";
      done: components["schemas"]["Id"][];
      skipped: {
        id: components["schemas"]["Id"];
        reason: "version" | "decided" | "not-found" | "no-suggestion" | "anchor-moved" | "moved" | "overlaps";
      }[];
      undo_until: string | null;
    };
    DecisionUndone: {
      id: components["schemas"]["Id"];
      undone: components["schemas"]["Id"][];
    };
    Difference: {
      from: string;
      to: string;
      segments: {
        op: "equal" | "insert" | "delete";
        text: string;
      }[];
    };
    Document: {
      id: components["schemas"]["Id"];
      title: string;
      external_id: components["schemas"]["ExternalId"] | null;
      owner: components["schemas"]["User"];
      characters: number;
      created_at: string;
      updated_at: string;
      deleted_at?: string;
      purge_at?: string;
    };
    DocumentList: {
      documents: components["schemas"]["Document"][];
      next_cursor: string | null;
      retention_seconds?: number;
    };
    Entry: {
      guests: boolean;
      sign_in_url: string | null;
      sign_out_url: string | null;
      user: components["schemas"]["Me"] | null;
      expires_at: string | null;
    };
    ExportBuilding: {
      status: "building";
      progress: number;
    };
    ExportFormats: {
      formats: ("docx" | "html" | "md" | "pdf" | "txt")[];
    };
    ExternalId: string;
    FindPerson: {
      to: string;
    };
    FoundPerson: {
      user: components["schemas"]["User"];
    };
    HeldLock: {
      class: string;
      name: string;
      lock_key: string;
      node: components["schemas"]["Id"] | null;
      since: string | null;
      age_ms: number | null;
      ttl_ms: number | null;
      fence: number | null;
      waiting: number;
      user: components["schemas"]["User"] | null;
      role?: components["schemas"]["Role"];
      session_id?: components["schemas"]["Id"] | null;
      share_link_id?: components["schemas"]["Id"];
    };
    HeldSeat: {
      lock_key: string;
      share_link_id: components["schemas"]["Id"];
      title: string | null;
      role: components["schemas"]["Role"];
      session_id: components["schemas"]["Id"] | null;
      user: components["schemas"]["User"] | null;
      node: components["schemas"]["Id"] | null;
      since: string | null;
      fence: number | null;
      ttl_ms: number | null;
      last_seen: string;
      state: "claiming" | "held" | "uncertain" | "away" | "ended";
    };
    Id: string;
    ImportChanges: {
      tables: number;
      footnotes: number;
      comments_left: number;
      changes_applied: number;
      equations?: number;
      hidden_passages?: number;
      left_out?: {
        [key: string]: number;
      };
      number_formats?: string[];
    };
    ImportedDocument: {
      id: components["schemas"]["Id"];
      title: string;
      external_id: components["schemas"]["ExternalId"] | null;
      owner: components["schemas"]["User"];
      characters: number;
      created_at: string;
      updated_at: string;
      import: components["schemas"]["ImportChanges"];
    };
    InvitePreview: {
      title: string;
      writer: {
        name: string;
      };
      free: boolean;
      yours: boolean;
    };
    Jobs: {
      jobs: {
        job: string;
        running: {
          node: components["schemas"]["Id"];
          since: string;
          fence: number;
        } | null;
        last_runs: {
          fence: number;
          node: components["schemas"]["Id"];
          started_at: string;
          ended_at: string | null;
          outcome: "done" | "running" | "stopped" | "lock-lost" | "failed";
          counts: {
            [key: string]: number;
          };
        }[];
        next_at: string;
        estimate_ms: number;
      }[];
    };
    Join: {
      invite: string;
    };
    Label: {
      label: string;
    };
    LockList: {
      classes: {
        class: string;
        held: number;
        waiting: number;
        oldest_age_ms: number | null;
      }[];
      locks: components["schemas"]["HeldLock"][];
      alarms: {
        class: string;
        alarm: "failures" | "wait" | "hold";
        since: string;
        measured: number;
        limit: number;
        remedy: string;
      }[];
      node: components["schemas"]["Id"];
      next_cursor: string | null;
    };
    Me: {
      id: components["schemas"]["Id"];
      name: string;
      guest_requests: boolean;
    };
    MeChange: {
      guest_requests?: boolean | null;
      name?: string | null;
    };
    NewDecision: {
      decision: "accept" | "reject";
      reviews: {
        id: components["schemas"]["Id"];
        version: number;
        moved?: string[];
      }[];
    };
    NewDocument: {
      title: string;
      external_id?: components["schemas"]["ExternalId"] | null;
      sections?: components["schemas"]["NewSection"][];
      text: string;
    };
    NewGuest: {
      name: string;
    };
    NewHandle: {
      handle: string | null;
    };
    NewOffer: {
      title: string;
      capacity: number;
      message?: string | null;
    };
    NewOfferClaim: {
      message?: string | null;
    };
    NewPushSubscription: {
      endpoint: string;
      keys: {
        p256dh: string;
        auth: string;
      };
      expirationTime?: number | null;
      lang?: "ko" | "en" | null;
    };
    NewPushSubscriptionId: {
      id: components["schemas"]["Id"];
      created_at: string;
    };
    NewReply: {
      body: string;
    };
    NewReview: {
      anchor: {
        start: number;
        end: number;
        quote: string;
      } | null;
      body: string;
      suggestion?: string | null;
    };
    NewReviewRequest: {
      to: string;
      as: components["schemas"]["Role"];
      document_id?: components["schemas"]["Id"] | null;
      message?: string | null;
    };
    NewReviewer: {
      user_id: components["schemas"]["Id"];
    };
    NewSection: {
      title: string;
      at?: number | string | null;
      floor?: number | null;
      limit?: number | null;
      line_break?: number | null;
      question?: boolean | null;
      unit?: components["schemas"]["CountUnit"] | null;
    };
    NewSections: {
      sections: components["schemas"]["NewSection"][];
    };
    Offer: {
      id: components["schemas"]["Id"];
      owner: components["schemas"]["User"];
      title: string;
      message: string | null;
      capacity: number;
      remaining: number;
      state: "open" | "sold-out" | "closed";
      created_at: string;
      closed_at: string | null;
      url: string;
    };
    OfferClaim: {
      id: components["schemas"]["Id"];
      offer_id: components["schemas"]["Id"];
      user: components["schemas"]["User"];
      number: number;
      state: "claimed" | "accepted";
      message: string | null;
      created_at: string;
    };
    OfferClaimList: {
      claims: components["schemas"]["OfferClaim"][];
      next_cursor: string | null;
    };
    OfferList: {
      offers: components["schemas"]["Offer"][];
      next_cursor: string | null;
    };
    Part: {
      anchor: components["schemas"]["Anchor"];
      text: string;
    };
    PartnerList: {
      partners: {
        user: components["schemas"]["User"];
        since: string;
      }[];
      next_cursor: string | null;
    };
    PassTurn: {
      to: components["schemas"]["Role"];
    };
    PushKey: {
      key: string;
    };
    PushSubscriptions: {
      subscriptions: {
        id: components["schemas"]["Id"];
        service: string;
        lang: "ko" | "en" | null;
        expires_at: string | null;
        created_at: string;
      }[];
    };
    Reminders: {
      review_unanswered: boolean;
      seat_free: boolean;
      request_unanswered: boolean;
      quiet: {
        from: string;
        to: string;
      } | null;
      time_zone: string | null;
    };
    Replied: {
      id: components["schemas"]["Id"];
      author: components["schemas"]["Author"];
      body: string;
      created_at: string;
      edited_at: string | null;
      review: components["schemas"]["Review"];
    };
    Reply: {
      id: components["schemas"]["Id"];
      author: components["schemas"]["Author"];
      body: string;
      created_at: string;
      edited_at: string | null;
    };
    RequestState: "pending" | "accepted" | "declined" | "withdrawn" | "expired";
    Review: {
      id: components["schemas"]["Id"];
      share_link_id: components["schemas"]["Id"];
      author: components["schemas"]["Author"];
      kind: "comment" | "suggestion" | "summary";
      origin: "form" | "typed";
      anchor: components["schemas"]["Anchor"] | null;
      body: string;
      suggestion: string | null;
      parts: components["schemas"]["Part"][];
      status: "open" | "accepted" | "rejected" | "resolved";
      outcome: ("withdrawn" | "fulfilled") | null;
      decision: components["schemas"]["Decided"] | null;
      version: number;
      change: number;
      changed_by: components["schemas"]["Id"] | null;
      replies: components["schemas"]["Reply"][];
      created_at: string;
      updated_at: string;
    };
    ReviewChanges: {
      body?: string | null;
      suggestion?: string | null;
    };
    ReviewCounts: {
      open: number;
      unread: number;
      total: number;
    };
    ReviewList: {
      reviews: components["schemas"]["Review"][];
      next_cursor: string | null;
    };
    ReviewRequest: {
      id: components["schemas"]["Id"];
      from: components["schemas"]["User"];
      to: components["schemas"]["User"];
      as: components["schemas"]["Role"];
      message: string | null;
      document_id: components["schemas"]["Id"] | null;
      title: string | null;
      state: components["schemas"]["RequestState"];
      created_at: string;
      decided_at: string | null;
      expires_at: string;
    };
    ReviewRequestList: {
      requests: components["schemas"]["ReviewRequest"][];
      next_cursor: string | null;
    };
    Role: "writer" | "reviewer";
    SeatView: {
      taken: boolean | null;
      user: components["schemas"]["User"] | null;
      since: string | null;
      waiting?: number;
    };
    Seats: {
      writer: components["schemas"]["SeatView"];
      reviewer: components["schemas"]["SeatView"];
    };
    Section: {
      title: string;
      at: number | null;
      floor?: number;
      limit?: number;
      line_break?: number;
      question?: boolean;
      unit?: components["schemas"]["CountUnit"];
    };
    Sections: {
      sections: components["schemas"]["Section"][];
    };
    Seen: {
      change: number;
    };
    Series: {
      minutes: string[];
      seats: (number | null)[];
      edits: (number | null)[];
      renewal_p99_ms: (number | null)[];
      missing: components["schemas"]["Id"][];
    };
    SessionDetails: {
      lock_key: string;
      share_link_id: components["schemas"]["Id"];
      title: string | null;
      role: components["schemas"]["Role"];
      session_id: components["schemas"]["Id"] | null;
      user: components["schemas"]["User"] | null;
      node: components["schemas"]["Id"] | null;
      since: string | null;
      fence: number | null;
      ttl_ms: number | null;
      last_seen: string;
      state: "claiming" | "held" | "uncertain" | "away" | "ended";
      why: string;
      told_by: "this-server" | "its-server" | "redis";
      as_of: string;
      last_heard: string | null;
      last_active: string | null;
      last_edit: string | null;
      last_renewal: string | null;
      trusted_until: string | null;
      kept_until: string | null;
      grace_until: string | null;
      idle_release_at: string | null;
      waiting: number;
      line: {
        position: number;
        user: components["schemas"]["User"];
        since: string;
        node: components["schemas"]["Id"];
      }[];
    };
    SessionList: {
      sessions: components["schemas"]["HeldSeat"][];
      nodes: {
        id: components["schemas"]["Id"];
        name: string | null;
        sessions: number;
        self: boolean;
      }[];
      next_cursor: string | null;
    };
    SuggestionOutcomes: {
      items: {
        id: string | null;
        state: "kept" | "withdrawn" | "refused";
        reason?: "quote-changed" | "version" | "decided" | "overlaps" | "full" | "too-long" | "not-yours" | "position" | "malformed";
        version?: number;
      }[];
    };
    Title: {
      title: string;
    };
    TransferCode: {
      code: string;
      url: string;
      expires_at: string;
    };
    Turn: {
      role: components["schemas"]["Role"];
      since: string;
      by: components["schemas"]["Author"];
    };
    User: {
      id: components["schemas"]["Id"];
      name: string;
    };
    UserDeletion: {
      id: components["schemas"]["Id"];
      state: "running" | "done";
      done: components["schemas"]["UserDeletionCounts"];
      left: components["schemas"]["UserDeletionCounts"];
      not_reached: ("backups" | "logs" | "browsers" | "webhooks" | "database-file")[];
    };
    UserDeletionBegun: {
      id: components["schemas"]["Id"];
      state: "running";
    };
    UserDeletionCounts: {
      documents: number;
      share_links: number;
    };
    Version: {
      id: components["schemas"]["Id"];
      document_id: components["schemas"]["Id"];
      number: number;
      kind: "pause" | "seat" | "decision" | "named" | "restore";
      label: string | null;
      authors: components["schemas"]["Author"][];
      restored_from: number | null;
      characters: number;
      created_at: string;
    };
    VersionList: {
      versions: components["schemas"]["Version"][];
      next_cursor: string | null;
    };
    VersionWithText: {
      id: components["schemas"]["Id"];
      document_id: components["schemas"]["Id"];
      number: number;
      kind: "pause" | "seat" | "decision" | "named" | "restore";
      label: string | null;
      authors: components["schemas"]["Author"][];
      restored_from: number | null;
      characters: number;
      created_at: string;
      text: string;
    };
    Webhook: {
      id: components["schemas"]["Id"];
      type: string;
      url: string;
      document_id: components["schemas"]["Id"] | null;
      share_link_id: components["schemas"]["Id"] | null;
      created_at: string;
      attempts: number;
      next_at: string | null;
      last_error: string | null;
      state: components["schemas"]["WebhookState"];
    };
    WebhookList: {
      webhooks: components["schemas"]["Webhook"][];
      next_cursor: string | null;
    };
    WebhookState: "pending" | "dead";
    Welcome: {
      user: components["schemas"]["User"];
      token: string;
      expires_at: string;
    };
    ShareLinkList: {
      share_links: components["schemas"]["ShareLink"][];
      next_cursor: string | null;
    };
    TextPosition: number | string;
    NewPart: {
      start: components["schemas"]["TextPosition"];
      end: components["schemas"]["TextPosition"];
      quote: string;
      text: string;
    } | {
      at: components["schemas"]["TextPosition"];
      text: string;
    };
    NewSuggestion: {
      id: string;
      version?: number | null;
      parts: components["schemas"]["NewPart"][];
      body?: string | null;
      group?: string;
    };
    SuggestionBatch: {
      put?: components["schemas"]["NewSuggestion"][];
      withdraw?: {
        id: components["schemas"]["Id"];
        version: number;
      }[];
    };
    ServerEvent: {
      event: "seat.granted";
      type: "seat.granted";
      session_id: components["schemas"]["Id"];
      role: components["schemas"]["Role"];
      fence: number;
      lease_ms: number;
      resume: string;
      user: components["schemas"]["User"];
      message_bytes: number;
      reconnect_within_ms: number;
    } | {
      event: "seat.waiting";
      type: "seat.waiting";
      position: number;
      holder: {
        name: string;
        since: string | null;
        you?: true;
      };
      retry_at: string;
    } | {
      event: "seat.uncertain";
      type: "seat.uncertain";
    } | {
      event: "seat.restored";
      type: "seat.restored";
    } | {
      event: "seat.idle";
      type: "seat.idle";
      release_at: string;
    } | {
      event: "seat.lost";
      type: "seat.lost";
      reason: "taken_over" | "expired" | "evicted" | "idle" | "revoked" | "deleted";
      by?: components["schemas"]["User"];
      at?: string;
    } | {
      event: "peer.joined";
      type: "peer.joined";
      role: components["schemas"]["Role"];
      user: components["schemas"]["User"];
    } | {
      event: "peer.left";
      type: "peer.left";
      role: components["schemas"]["Role"];
      user: components["schemas"]["User"];
    } | {
      event: "document.saved";
      type: "document.saved";
      state_vector: string;
    } | {
      event: "document.size";
      type: "document.size";
      state: "ample" | "near" | "full";
      bytes: number;
      limit: number;
    } | {
      event: "turn.changed";
      type: "turn.changed";
      turn: components["schemas"]["Turn"];
    } | {
      event: "sections.changed";
      type: "sections.changed";
      sections: components["schemas"]["Section"][];
    } | {
      event: "review.created";
      type: "review.created";
      review: components["schemas"]["Review"];
    } | {
      event: "review.updated";
      type: "review.updated";
      review: components["schemas"]["Review"];
    } | {
      event: "review.deleted";
      type: "review.deleted";
      review: components["schemas"]["Review"] | {
        id: components["schemas"]["Id"];
        share_link_id: components["schemas"]["Id"];
      };
    } | {
      event: "invite.refused";
      type: "invite.refused";
      user: components["schemas"]["User"];
      at: string;
    } | {
      event: "decision.made";
      type: "decision.made";
      id: components["schemas"]["Id"];
      decision: "accept" | "reject";
      done: {
        id: components["schemas"]["Id"];
        version: number;
      }[];
      by: components["schemas"]["User"];
    } | {
      event: "decision.undone";
      type: "decision.undone";
      id: components["schemas"]["Id"];
      undone: components["schemas"]["Id"][];
    } | {
      event: "denied";
      type: "denied";
      reason: "not-the-writer" | "seat-uncertain" | "not-stored";
    } | {
      event: "server.draining";
      type: "server.draining";
      reconnect_after_ms: number;
    } | {
      event: "problem";
      type: string;
      title: string;
      status: number;
    };
    CloseCode: 1000 | 1012 | 4400 | 4401 | 4403 | 4404 | 4408 | 4409 | 4410 | 4411 | 4413 | 4503 | 4529;
    WebhookBody: {
      id: components["schemas"]["Id"];
      type: string;
      created_at: string;
      document_id: string | null;
      share_link_id: string | null;
      external_id: string | null;
      data: Record<string, never>;
    };
  };
  responses: never;
  parameters: {
    IfMatch: string;
    Limit: number;
    Cursor: string;
  };
  requestBodies: never;
  headers: never;
  pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
  entry: {
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Entry"];
        };
      };
    };
  };
  leave: {
    responses: {
      204: {
        content?: never;
      };
    };
  };
  signOutEverywhere: {
    responses: {
      204: {
        content?: never;
      };
    };
  };
  revokeSessions: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      204: {
        content?: never;
      };
    };
  };
  exchangeSession: {
    responses: {
      204: {
        content?: never;
      };
    };
  };
  enterAsGuest: {
    requestBody: {
      content: {
        "application/json": components["schemas"]["NewGuest"];
      };
    };
    responses: {
      201: {
        content: {
          "application/json": components["schemas"]["Welcome"];
        };
      };
    };
  };
  me: {
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Me"];
        };
      };
    };
  };
  deleteMe: {
    parameters: {
      query?: {
        reviews?: "keep" | "delete";
      };
    };
    responses: {
      202: {
        content: {
          "application/json": components["schemas"]["UserDeletionBegun"];
        };
      };
    };
  };
  changeMe: {
    requestBody: {
      content: {
        "application/json": components["schemas"]["MeChange"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": (components["schemas"]["Me"] & components["schemas"]["Welcome"]) | components["schemas"]["Me"];
        };
      };
    };
  };
  startSignIn: {
    parameters: {
      query?: {
        return?: string;
      };
    };
    responses: never;
  };
  completeSignIn: {
    parameters: {
      query?: {
        state?: string;
        code?: string;
        error?: string;
        iss?: string;
      };
    };
    responses: never;
  };
  endProviderSession: {
    responses: never;
  };
  enterByCode: {
    requestBody: {
      content: {
        "application/json": components["schemas"]["Code"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Welcome"];
        };
      };
    };
  };
  createCode: {
    responses: {
      201: {
        content: {
          "application/json": components["schemas"]["TransferCode"];
        };
      };
    };
  };
  deleteUser: {
    parameters: {
      query?: {
        reviews?: "keep" | "delete";
      };
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      202: {
        content: {
          "application/json": components["schemas"]["UserDeletionBegun"];
        };
      };
    };
  };
  exportUser: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/x-ndjson": string;
        };
      };
    };
  };
  exportMe: {
    responses: {
      200: {
        content: {
          "application/x-ndjson": string;
        };
      };
    };
  };
  getUserDeletion: {
    parameters: {
      path: {
        receipt: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["UserDeletion"];
        };
      };
    };
  };
  reminders: {
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Reminders"];
        };
      };
    };
  };
  setReminders: {
    requestBody: {
      content: {
        "application/json": components["schemas"]["Reminders"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Reminders"];
        };
      };
    };
  };
  listDocuments: {
    parameters: {
      query?: {
        deleted?: boolean;
        limit?: components["parameters"]["Limit"];
        cursor?: components["parameters"]["Cursor"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["DocumentList"];
        };
      };
    };
  };
  createDocument: {
    requestBody: {
      content: {
        "application/json": components["schemas"]["NewDocument"];
      };
    };
    responses: {
      201: {
        content: {
          "application/json": components["schemas"]["Document"];
        };
      };
    };
  };
  findOrCreateDocument: {
    parameters: {
      path: {
        external_id: components["schemas"]["ExternalId"];
      };
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["NewDocument"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Document"];
        };
      };
      201: {
        content: {
          "application/json": components["schemas"]["Document"];
        };
      };
    };
  };
  getDocument: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Document"];
        };
      };
    };
  };
  deleteDocument: {
    parameters: {
      query?: {
        permanent?: boolean;
      };
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      204: {
        content?: never;
      };
    };
  };
  renameDocument: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["Title"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Document"];
        };
      };
    };
  };
  restoreDocument: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Document"];
        };
      };
    };
  };
  documentText: {
    parameters: {
      query?: {
        view?: "accepted";
      };
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "text/plain": string;
        };
      };
    };
  };
  replaceText: {
    parameters: {
      query?: {
        while_open?: boolean;
      };
      header?: {
        "If-Match"?: string;
      };
      path: {
        id: components["schemas"]["Id"];
      };
    };
    requestBody: {
      content: {
        "application/json": {
          text: string;
        };
        "text/plain": string;
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Document"];
        };
      };
    };
  };
  listSections: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Sections"];
        };
      };
    };
  };
  setSections: {
    parameters: {
      header?: {
        "If-Match"?: components["parameters"]["IfMatch"];
      };
      path: {
        id: components["schemas"]["Id"];
      };
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["NewSections"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Sections"];
        };
      };
    };
  };
  importDocument: {
    parameters: {
      query?: {
        title?: string;
        name?: string;
      };
    };
    requestBody: {
      content: {
        "application/octet-stream": string;
      };
    };
    responses: {
      201: {
        content: {
          "application/json": components["schemas"]["ImportedDocument"];
        };
      };
    };
  };
  exportDocument: {
    parameters: {
      query: {
        format: "docx" | "html" | "md" | "txt" | "pdf";
        reviews?: "1" | "0";
        zone?: string;
      };
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/vnd.openxmlformats-officedocument.wordprocessingml.document": string;
          "application/pdf": string;
          "text/html": string;
          "text/markdown": string;
          "text/plain": string;
        };
      };
      202: {
        content: {
          "application/json": components["schemas"]["ExportBuilding"];
        };
      };
    };
  };
  listExportFormats: {
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["ExportFormats"];
        };
      };
    };
  };
  listVersions: {
    parameters: {
      query?: {
        limit?: components["parameters"]["Limit"];
        cursor?: components["parameters"]["Cursor"];
      };
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["VersionList"];
        };
      };
    };
  };
  nameVersion: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["Label"];
      };
    };
    responses: {
      201: {
        content: {
          "application/json": components["schemas"]["Version"];
        };
      };
    };
  };
  getVersion: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
        vid: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["VersionWithText"];
        };
      };
    };
  };
  diffVersion: {
    parameters: {
      query?: {
        against?: string;
      };
      path: {
        id: components["schemas"]["Id"];
        vid: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Difference"];
        };
      };
    };
  };
  restoreVersion: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
        vid: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Version"];
        };
      };
      201: {
        content: {
          "application/json": components["schemas"]["Version"];
        };
      };
    };
  };
  shareDocument: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["ShareLinkWithInvite"];
        };
      };
      201: {
        content: {
          "application/json": components["schemas"]["ShareLinkWithInvite"];
        };
      };
    };
  };
  listShareLinks: {
    parameters: {
      query?: {
        limit?: number;
        cursor?: components["parameters"]["Cursor"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["ShareLinkList"];
        };
      };
    };
  };
  showShareLink: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["ShareLink"];
        };
      };
    };
  };
  revokeShareLink: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      204: {
        content?: never;
      };
    };
  };
  joinShareLink: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["Join"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["ShareLink"];
        };
      };
    };
  };
  renewInvite: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["ShareLinkWithInvite"];
        };
      };
    };
  };
  checkInvite: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["Join"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["InvitePreview"];
        };
      };
    };
  };
  replaceReviewer: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["NewReviewer"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["ShareLink"];
        };
      };
    };
  };
  removeReviewer: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      204: {
        content?: never;
      };
    };
  };
  leaveShareLink: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      204: {
        content?: never;
      };
    };
  };
  address: {
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Address"];
        };
      };
    };
  };
  setHandle: {
    requestBody: {
      content: {
        "application/json": components["schemas"]["NewHandle"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Address"];
        };
      };
    };
  };
  renewAddress: {
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Address"];
        };
      };
    };
  };
  findPerson: {
    requestBody: {
      content: {
        "application/json": components["schemas"]["FindPerson"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["FoundPerson"];
        };
      };
    };
  };
  listPartners: {
    parameters: {
      query?: {
        limit?: components["parameters"]["Limit"];
        cursor?: components["parameters"]["Cursor"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["PartnerList"];
        };
      };
    };
  };
  removePartner: {
    parameters: {
      path: {
        user_id: components["schemas"]["Id"];
      };
    };
    responses: {
      204: {
        content?: never;
      };
    };
  };
  listRequests: {
    parameters: {
      query?: {
        state?: components["schemas"]["RequestState"];
        direction?: "sent" | "received";
        limit?: components["parameters"]["Limit"];
        cursor?: components["parameters"]["Cursor"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["ReviewRequestList"];
        };
      };
    };
  };
  sendRequest: {
    requestBody: {
      content: {
        "application/json": components["schemas"]["NewReviewRequest"];
      };
    };
    responses: {
      201: {
        content: {
          "application/json": components["schemas"]["ReviewRequest"];
        };
      };
    };
  };
  showRequest: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["ReviewRequest"];
        };
      };
    };
  };
  acceptRequest: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["AcceptedRequest"];
        };
      };
    };
  };
  declineAllRequests: {
    responses: {
      200: {
        content: {
          "application/json": {
            declined: number;
          };
        };
      };
    };
  };
  declineRequest: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["ReviewRequest"];
        };
      };
    };
  };
  withdrawRequest: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["ReviewRequest"];
        };
      };
    };
  };
  listOffers: {
    parameters: {
      query?: {
        limit?: components["parameters"]["Limit"];
        cursor?: components["parameters"]["Cursor"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["OfferList"];
        };
      };
    };
  };
  createOffer: {
    requestBody: {
      content: {
        "application/json": components["schemas"]["NewOffer"];
      };
    };
    responses: {
      201: {
        content: {
          "application/json": components["schemas"]["Offer"];
        };
      };
    };
  };
  getOffer: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Offer"] & {
            claim: components["schemas"]["OfferClaim"] | null;
          };
        };
      };
    };
  };
  closeOffer: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Offer"];
        };
      };
    };
  };
  listOfferClaims: {
    parameters: {
      query?: {
        limit?: components["parameters"]["Limit"];
        cursor?: components["parameters"]["Cursor"];
      };
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["OfferClaimList"];
        };
      };
    };
  };
  claimOffer: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    requestBody?: {
      content: {
        "application/json": components["schemas"]["NewOfferClaim"];
      };
    };
    responses: {
      201: {
        content: {
          "application/json": components["schemas"]["OfferClaim"];
        };
      };
    };
  };
  endOfferClaim: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
        cid: components["schemas"]["Id"];
      };
    };
    responses: {
      204: {
        content?: never;
      };
    };
  };
  acceptOfferClaim: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
        cid: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": {
            partner: components["schemas"]["User"];
            claim: components["schemas"]["OfferClaim"];
          };
        };
      };
    };
  };
  listReviews: {
    parameters: {
      query?: {
        limit?: number;
        cursor?: components["parameters"]["Cursor"];
        status?: "open" | "accepted" | "rejected" | "resolved";
        kind?: "comment" | "suggestion" | "summary";
      };
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["ReviewList"];
        };
      };
    };
  };
  createReview: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["NewReview"];
      };
    };
    responses: {
      201: {
        content: {
          "application/json": components["schemas"]["Review"];
        };
      };
    };
  };
  showReview: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
        rid: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Review"];
        };
      };
    };
  };
  deleteReview: {
    parameters: {
      header?: {
        "If-Match"?: components["parameters"]["IfMatch"];
      };
      path: {
        id: components["schemas"]["Id"];
        rid: components["schemas"]["Id"];
      };
    };
    responses: {
      204: {
        content?: never;
      };
    };
  };
  editReview: {
    parameters: {
      header?: {
        "If-Match"?: components["parameters"]["IfMatch"];
      };
      path: {
        id: components["schemas"]["Id"];
        rid: components["schemas"]["Id"];
      };
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["ReviewChanges"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Review"];
        };
      };
    };
  };
  replyToReview: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
        rid: components["schemas"]["Id"];
      };
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["NewReply"];
      };
    };
    responses: {
      201: {
        content: {
          "application/json": components["schemas"]["Replied"];
        };
      };
    };
  };
  deleteReply: {
    parameters: {
      header?: {
        "If-Match"?: components["parameters"]["IfMatch"];
      };
      path: {
        id: components["schemas"]["Id"];
        rid: components["schemas"]["Id"];
        reply: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Review"];
        };
      };
    };
  };
  editReply: {
    parameters: {
      header?: {
        "If-Match"?: components["parameters"]["IfMatch"];
      };
      path: {
        id: components["schemas"]["Id"];
        rid: components["schemas"]["Id"];
        reply: components["schemas"]["Id"];
      };
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["NewReply"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Review"];
        };
      };
    };
  };
  acceptReview: {
    parameters: {
      header?: {
        "If-Match"?: components["parameters"]["IfMatch"];
      };
      path: {
        id: components["schemas"]["Id"];
        rid: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Review"];
        };
      };
    };
  };
  rejectReview: {
    parameters: {
      header?: {
        "If-Match"?: components["parameters"]["IfMatch"];
      };
      path: {
        id: components["schemas"]["Id"];
        rid: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Review"];
        };
      };
    };
  };
  resolveReview: {
    parameters: {
      header?: {
        "If-Match"?: components["parameters"]["IfMatch"];
      };
      path: {
        id: components["schemas"]["Id"];
        rid: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Review"];
        };
      };
    };
  };
  reopenReview: {
    parameters: {
      header?: {
        "If-Match"?: components["parameters"]["IfMatch"];
      };
      path: {
        id: components["schemas"]["Id"];
        rid: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Review"];
        };
      };
    };
  };
  suggest: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["SuggestionBatch"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["SuggestionOutcomes"];
        };
      };
    };
  };
  decideReviews: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["NewDecision"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["DecisionMade"];
        };
      };
    };
  };
  undoDecision: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
        did: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["DecisionUndone"];
        };
      };
    };
  };
  markSeen: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["Seen"];
      };
    };
    responses: {
      204: {
        content?: never;
      };
    };
  };
  passTurn: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    requestBody: {
      content: {
        "application/json": components["schemas"]["PassTurn"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": {
            turn: components["schemas"]["Turn"];
          };
        };
      };
    };
  };
  connect: {
    parameters: {
      query?: {
        token?: string;
        events?: "0" | "1";
        wait?: number;
        takeover?: "0" | "1";
        resume?: string;
      };
      path: {
        id: components["schemas"]["Id"];
        role: components["schemas"]["Role"];
      };
    };
    responses: never;
  };
  pushKey: {
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["PushKey"];
        };
      };
    };
  };
  listPushSubscriptions: {
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["PushSubscriptions"];
        };
      };
    };
  };
  subscribe: {
    requestBody: {
      content: {
        "application/json": components["schemas"]["NewPushSubscription"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["NewPushSubscriptionId"];
        };
      };
      201: {
        content: {
          "application/json": components["schemas"]["NewPushSubscriptionId"];
        };
      };
    };
  };
  unsubscribe: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      204: {
        content?: never;
      };
    };
  };
  listSessions: {
    parameters: {
      query?: {
        node?: "self";
        user?: string;
        document?: components["schemas"]["Id"];
        limit?: number;
        cursor?: components["parameters"]["Cursor"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["SessionList"];
        };
      };
    };
  };
  explainSession: {
    parameters: {
      path: {
        session_id: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["SessionDetails"];
        };
      };
    };
  };
  endSession: {
    parameters: {
      path: {
        session_id: components["schemas"]["Id"];
      };
    };
    responses: {
      204: {
        content?: never;
      };
    };
  };
  revokeShareLinkAsAdmin: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      204: {
        content?: never;
      };
    };
  };
  readSeries: {
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Series"];
        };
      };
    };
  };
  listAudit: {
    parameters: {
      query?: {
        user?: components["schemas"]["Id"];
        action?: string;
        since?: string;
        limit?: components["parameters"]["Limit"];
        cursor?: components["parameters"]["Cursor"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["AuditPage"];
        };
      };
    };
  };
  listLocks: {
    parameters: {
      query?: {
        class?: string;
        limit?: components["parameters"]["Limit"];
        cursor?: components["parameters"]["Cursor"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["LockList"];
        };
      };
    };
  };
  listJobs: {
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Jobs"];
        };
      };
    };
  };
  listWebhooks: {
    parameters: {
      query?: {
        state?: components["schemas"]["WebhookState"];
        limit?: components["parameters"]["Limit"];
        cursor?: components["parameters"]["Cursor"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["WebhookList"];
        };
      };
    };
  };
  replayWebhooks: {
    parameters: {
      query?: {
        since?: string;
      };
    };
    responses: {
      200: {
        content: {
          "application/json": {
            replayed: number;
          };
        };
      };
    };
  };
  replayWebhook: {
    parameters: {
      path: {
        id: components["schemas"]["Id"];
      };
    };
    responses: {
      200: {
        content: {
          "application/json": components["schemas"]["Webhook"];
        };
      };
    };
  };
  alive: {
    responses: {
      200: {
        content: {
          "application/json": {
            status: "ok";
          };
        };
      };
    };
  };
  ready: {
    responses: {
      200: {
        content: {
          "application/json": {
            status: "ready";
            age_ms: number;
            degraded?: "locks"[];
            remedy?: string;
            warnings?: {
              name: string;
              remedy: string;
            }[];
          };
        };
      };
    };
  };
  metrics: {
    responses: {
      200: {
        content: {
          "text/plain": string;
        };
      };
    };
  };
  openapi: {
    responses: {
      200: {
        content: {
          "application/json": Record<string, never>;
        };
      };
    };
  };
}
