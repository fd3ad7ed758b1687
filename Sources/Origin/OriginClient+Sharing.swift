import Ground
import NIOCore
import Wire

extension OriginClient {
    /// How a question comes to a connection.
    enum Advice {
        case join(OriginConnection)
        /// ``OriginHop/look()`` or ``OriginHop/invited(to:)`` follows.
        case wait
        case ask
        case refuse
    }

    func advice(for hop: OriginHop) -> Advice {
        let origin = hop.request.origin
        guard hop.request.upgrade.isEmpty, mayShare(origin) else { return .ask }
        switch shared.wanted(by: hop.number, to: origin) {
        case .join(let id):
            if let connection = connections[id], isShareable(connection) {
                return .join(connection)
            }
            run(shared.ended(id, to: origin), at: origin)
            return .ask
        case .wait: return .wait
        case .ask: return .ask
        case .refuse: return .refuse
        }
    }

    /// A connection to `origin` may turn out to be one for several fetches.
    private func mayShare(_ origin: OriginAuthority) -> Bool {
        guard origin.isSecure, secureOrigins.mayShare(origin) else { return false }
        return (try? trust(for: origin))?.settings.protocols.contains(.http2) ?? false
    }

    private func isShareable(_ connection: OriginConnection) -> Bool {
        connection.isShared && !connection.isIdle && connection.room > 0
            && connection.generation == generation
    }

    /// A question opens a connection, or waits for a place for one.
    func opens(_ hop: OriginHop, hasPlace: Bool) {
        let origin = hop.request.origin
        guard hop.request.upgrade.isEmpty else { return }
        if mayShare(origin) { shared.opens(hop.number, to: origin, hasPlace: hasPlace) }
    }

    /// It has another connection.
    func opensNoMore(_ hop: OriginHop) {
        let origin = hop.request.origin
        run(shared.opensNoMore(hop.number, to: origin), at: origin)
    }

    /// Its connection is open, and in use by it.
    func opened(_ connection: OriginConnection, by hop: OriginHop) {
        let origin = connection.origin
        guard connection.isShared else {
            // Those that waited for it open connections of their own.
            guard origin.isSecure else { return }
            for number in shared.dismissed(from: origin) { lookSoon(number) }
            return
        }
        connection.opener = hop.number
        roomChanged(connection)
    }

    /// A connection of several fetches has room for more, or for fewer, than before.
    func roomChanged(_ connection: OriginConnection) {
        guard connection.isShared || connection.isOver else { return }
        let (id, origin) = (connection.id, connection.origin)
        let isOffered =
            !connection.isIdle && !connection.isOver && connection.generation == generation
        run(
            isOffered
                ? shared.offers(id, to: origin, room: connection.room)
                : shared.ended(id, to: origin), at: origin)
        // Until its room is known, those that wait for it open no other.
        guard let opener = connection.opener, connection.hasSettings || connection.isOver else {
            return
        }
        connection.opener = nil
        run(shared.opensNoMore(opener, to: origin), at: origin)
    }

    /// A question is over; if it was to open the connection that others wait for, they fail with
    /// it when the reason is the origin's, and otherwise the next one opens.
    func sharingLeft(_ hop: OriginHop, _ failure: OriginFailure?) {
        let origin = hop.request.origin
        guard shared.left(hop.number, origin) else { return }
        guard let failure, failure.isOfConnecting else {
            return run(shared.opensNoMore(hop.number, to: origin), at: origin)
        }
        for number in shared.dismissed(from: origin) {
            loop.assumeIsolated().execute { [self] in hops[number]?.openingFailed(failure) }
        }
    }

    private func run(_ steps: [SharedConnections.Step], at origin: OriginAuthority) {
        for step in steps {
            switch step {
            case .ask(let number): lookSoon(number)
            case .join(let number, let id):
                loop.assumeIsolated().execute { [self] in invite(number, to: id, at: origin) }
            }
        }
    }

    private func lookSoon(_ number: UInt64) {
        loop.assumeIsolated().execute { [self] in hops[number]?.look() }
    }

    private func invite(_ number: UInt64, to id: ConnectionID, at origin: OriginAuthority) {
        let connection = connections[id]
        if let hop = hops[number] {
            if let connection, isShareable(connection) {
                hop.invited(to: connection)
            } else {
                hop.look()
            }
        }
        if let connection { roomChanged(connection) }
    }
}

extension OriginFailure {
    /// True if whoever else waits for the same connection has the same to be told.
    fileprivate var isOfConnecting: Bool {
        switch self {
        case .addressRefused, .nameNotFound, .resolverFailed, .connectFailed, .tls,
            .timedOut(.resolving, limit: _), .timedOut(.connecting, limit: _),
            .timedOut(.handshaking, limit: _):
            true
        default: false
        }
    }
}
