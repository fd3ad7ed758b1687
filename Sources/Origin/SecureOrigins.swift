import Wire

/// What is remembered of origins that speak TLS, to make the next connection cheaper.
struct SecureOrigins {
    private struct Memory {
        var resumption: TLSResumption?
        var applicationProtocol: TLSApplicationProtocol?
    }

    /// Origins that are remembered; those remembered first are forgotten first.
    static let originsMax = 1000

    private var memories: [OriginAuthority: Memory] = [:]
    private var order: [OriginAuthority] = []

    /// What a session to `origin` is resumed with.
    func resumption(of origin: OriginAuthority) -> TLSResumption? {
        memories[origin]?.resumption
    }

    /// True if several fetches shared the last connection to `origin`, or if there was none.
    func mayShare(_ origin: OriginAuthority) -> Bool {
        guard let memory = memories[origin] else { return true }
        return memory.applicationProtocol == .http2
    }

    mutating func keep(_ resumption: TLSResumption, of origin: OriginAuthority) {
        memories[origin]?.resumption = resumption
    }

    /// A handshake with `origin` agreed on a protocol; nil is HTTP/1.1.
    mutating func agreed(
        on applicationProtocol: TLSApplicationProtocol?, with origin: OriginAuthority
    ) {
        if memories[origin] != nil {
            memories[origin]?.applicationProtocol = applicationProtocol
            return
        }
        if order.count >= Self.originsMax { memories[order.removeFirst()] = nil }
        order.append(origin)
        memories[origin] = Memory(applicationProtocol: applicationProtocol)
    }

    /// Trust has changed, so that no session is resumed.
    mutating func removeAll() {
        self = SecureOrigins()
    }
}
