import Ground
import HTTPRules
import Origin
import Serving
import Synchronization
import Wire

/// What a fetch takes of what origins and this node have for all.
extension FillRun {
    /// The origin is asked from now on.
    func askOrigin() {
        state.withLock { $0.askedAt = SystemClock.now() }
    }

    /// The origin is asked for no more than the one who caused it wants.
    func narrow() {
        change { $0.lookup.fill.narrowed(effects: &$1) }
    }

    /// What nobody waits for any more goes on only for a little from now on.
    func limitUnread() {
        state.withLock {
            $0.lookup.fill.limitUnread(time: settings.unreadTime, bytes: settings.unreadBytesMax)
        }
    }

    /// Bytes have come that nobody reads; the last ones, if the client that caused it has taken as
    /// many as it may.
    func takeUnread(_ bytes: Int) {
        guard !hall.takeUnread(UInt64(bytes), for: client) else { return }
        state.withLock { $0.lookup.fill.limitUnread(time: .zero, bytes: 0) }
    }

    /// The client that caused it answers for what it reads not: for the rest, which is fetched
    /// whether or not anybody waits for it, or only for what comes before its part, after which
    /// nothing is fetched for nobody.
    func goOn(unread: Bool) {
        state.withLock {
            $0.known.isPaid = true
            if unread {
                $0.lookup.fill.unlimitUnread()
            } else {
                $0.lookup.fill.limitUnread(time: .zero, bytes: 0)
            }
        }
    }

    /// The origin is asked, and nobody waits for what it answers.
    var isUnread: Bool { state.withLock { $0.isUnread } }

    /// Bytes of the body by the second since the origin was asked.
    func bytesPerSecond(now: Instant) -> Double {
        let (bytes, askedAt) = state.withLock { ($0.lookup.fill.receivedBytes, $0.askedAt ?? now) }
        return Double(bytes) * 1e9 / Double(max(1, (now - askedAt).nanoseconds))
    }

    /// Whom it belongs to before its origin is asked.
    var holders: [ShareHolder] {
        guard query.isImage else {
            return [.site(query.plan.name)] + (client.map { [$0] } ?? [])
                + (query.body.isEmpty ? [] : [.uploads])
        }
        let key = key
        return OriginAuthority(ofKey: key.span).map { holders(askingAt: $0, nil) } ?? []
    }

    /// Whom it belongs to while `origin`, which clients may name, is asked at `address`.
    func holders(askingAt origin: OriginAuthority, _ address: IPAddress?) -> [ShareHolder] {
        [ShareHolder(ownerOf: origin)] + (address.map { [ShareHolder(originAt: $0)] } ?? [])
            + (client.map { [$0] } ?? [])
    }
}
