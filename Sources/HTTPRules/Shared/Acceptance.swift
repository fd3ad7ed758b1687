/// What becomes of a whole answer of a site's origin, as far as its head decides it (RFC 9111 §3,
/// §4.1).
package struct Acceptance: Hashable, Sendable {
    /// What was stored for the same request before.
    package enum Before: Hashable, Sendable {
        case nothing
        case fresh
        case stale
    }

    private let status: UInt16
    private let notStored: NotStored?
    private let isShareable: Bool
    private let isSelectable: Bool
    private let before: Before
    /// There is a key under which later requests would find it; until then it is taken for granted.
    package var isPlaced = true

    package init(_ examination: Examination, _ vary: VaryNames, status: UInt16, before: Before) {
        self.status = status
        notStored = examination.notStored
        isShareable = examination.isShareable
        isSelectable = vary.isSelectable
        self.before = before
    }

    /// The rules allow that it is stored.
    package var isStorable: Bool { notStored == nil && isSelectable && isPlaced }

    /// It may be given to others who wait for the same fetch.
    package var isShared: Bool { isShareable && isSelectable && isPlaced }

    /// What was stored is not to be used any more, whether or not this one will be whole.
    ///
    /// An answer that may not be stored leaves what is still fresh; a failure says nothing of what
    /// there is.
    package var endsStored: Bool {
        before != .nothing && isNews && !StatusRules.isTransient(status)
    }

    /// Those who ask next are not to wait for each other: their answers will not be shared either.
    package var isHitForMiss: Bool {
        isNews && (notStored?.isOfEveryAnswer == true || !isSelectable)
    }

    private var isNews: Bool { isStorable || before != .fresh }
}

extension NotStored {
    /// The next request to the same key will hardly be answered otherwise: it is not the request
    /// that is the reason.
    fileprivate var isOfEveryAnswer: Bool {
        switch self {
        case .noStore, .isPrivate, .setCookie, .credentials, .varyEverything, .contentType,
            .noFreshness:
            true
        case .method, .status, .partialContent, .requestNoStore, .authorization: false
        }
    }

    /// It is the request or its client that is the reason, and says nothing of what is stored.
    package var isOfRequest: Bool {
        switch self {
        case .requestNoStore, .authorization, .setCookie, .credentials: true
        case .method, .status, .partialContent, .noStore, .isPrivate, .varyEverything, .contentType,
            .noFreshness:
            false
        }
    }
}
