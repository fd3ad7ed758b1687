import HTTPRules

extension NotStored {
    /// The next request to the same key will hardly be answered otherwise: it is not the request
    /// that is the reason.
    var isOfEveryAnswer: Bool {
        switch self {
        case .noStore, .isPrivate, .setCookie, .varyEverything, .contentType, .noFreshness: true
        case .method, .status, .partialContent, .requestNoStore, .authorization: false
        }
    }

    /// It is the request that is the reason, and says nothing of what is stored.
    var isOfRequest: Bool {
        switch self {
        case .requestNoStore, .authorization: true
        default: false
        }
    }
}
