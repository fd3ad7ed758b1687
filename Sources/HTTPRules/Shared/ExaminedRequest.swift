/// What the storing of an answer depends on in its request (RFC 9111 §3).
package struct RequestCacheability: Hashable, Sendable {
    package enum Method: Hashable, Sendable {
        case get
        case head
        case other
    }

    package var method: Method
    /// It had an Authorization (RFC 9111 §3.5).
    package var hasAuthorization: Bool
    /// It had a Cookie.
    package var hasCookie: Bool
    /// It said `no-store` (RFC 9111 §5.2.1.5).
    package var isNoStore: Bool

    package init(
        method: Method = .get, hasAuthorization: Bool = false, hasCookie: Bool = false,
        isNoStore: Bool = false
    ) {
        self.method = method
        self.hasAuthorization = hasAuthorization
        self.hasCookie = hasCookie
        self.isNoStore = isNoStore
    }
}
