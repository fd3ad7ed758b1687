import Wire

/// What is remembered of origins that speak TLS, to make the next connection cheaper.
struct OriginTLSCache {
    private struct Entry {
        var resumption: TLSResumption?
        var applicationProtocol: TLSApplicationProtocol?
    }

    /// Origins that are remembered; those remembered first are forgotten first.
    static let originsMax = 1000

    private var entries: [OriginAuthority: Entry] = [:]
    private var order: [OriginAuthority] = []

    /// What a session to `origin` is resumed with.
    func resumption(of origin: OriginAuthority) -> TLSResumption? {
        entries[origin]?.resumption
    }

    /// True if several fetches shared the last connection to `origin`, or if there was none.
    func maySupportHTTP2(_ origin: OriginAuthority) -> Bool {
        guard let memory = entries[origin] else { return true }
        return memory.applicationProtocol == .http2
    }

    mutating func store(_ resumption: TLSResumption, of origin: OriginAuthority) {
        entries[origin]?.resumption = resumption
    }

    /// A handshake with `origin` agreed on a protocol; nil is HTTP/1.1.
    mutating func recordProtocol(
        on applicationProtocol: TLSApplicationProtocol?, with origin: OriginAuthority
    ) {
        if entries[origin] != nil {
            entries[origin]?.applicationProtocol = applicationProtocol
            return
        }
        if order.count >= Self.originsMax { entries[order.removeFirst()] = nil }
        order.append(origin)
        entries[origin] = Entry(applicationProtocol: applicationProtocol)
    }

    /// Trust has changed, so that no session is resumed.
    mutating func removeAll() {
        self = OriginTLSCache()
    }
}
