import Ground
import HTTPRules
import Origin
import Serving
import Synchronization
import Wire

/// What a fetch takes of what origins and this node have for all.
extension ActiveFetch {
    /// The origin is asked from now on.
    func recordOriginFetchStart() {
        state.withLock { $0.originFetchStartedAt = SystemClock.now() }
    }

    /// The origin is asked for no more than the one who caused it wants.
    func limitToPart() {
        update { $0.lookup.fetch.limitedToPart(effects: &$1) }
    }

    /// What nobody waits for any more goes on only for a little from now on.
    func limitUnread() {
        state.withLock {
            $0.lookup.fetch.limitUnread(
                time: settings.unreadTimeout, bytes: settings.unreadBytesMax)
        }
    }

    /// Bytes have come that nobody reads; the last ones, if the client that caused it has taken as
    /// many as it may.
    func recordUnreadBytes(_ bytes: Int) {
        guard !context.chargeUnread(UInt64(bytes), for: client) else { return }
        state.withLock { $0.lookup.fetch.limitUnread(time: .zero, bytes: 0) }
    }

    /// The client that caused it answers for what it reads not: for the rest, which is fetched
    /// whether or not anybody waits for it, or only for what comes before its part, after which
    /// nothing is fetched for nobody.
    func chargeToClient(continuesUnread: Bool) {
        state.withLock {
            $0.progress.isChargedToClient = true
            if continuesUnread {
                $0.lookup.fetch.removeUnreadLimit()
            } else {
                $0.lookup.fetch.limitUnread(time: .zero, bytes: 0)
            }
        }
    }

    /// The origin is asked, and nobody waits for what it answers.
    var isUnread: Bool { state.withLock { $0.isUnread } }

    /// Bytes of the body by the second since the origin was asked.
    func bytesPerSecond(now: Instant) -> Double {
        let (bytes, askedAt) = state.withLock {
            ($0.lookup.fetch.receivedBytes, $0.originFetchStartedAt ?? now)
        }
        return Double(bytes) * 1e9 / Double(max(1, (now - askedAt).nanoseconds))
    }

    /// Whom it belongs to before its origin is asked.
    var quotaHolders: [QuotaHolder] {
        guard siteRequest.isImage else {
            return [.site(siteRequest.policy.name)] + (client.map { [$0] } ?? [])
                + (siteRequest.body.isEmpty ? [] : [.uploads])
        }
        let key = key
        return OriginAuthority(ofKey: key.span).map { holders(fetchingFrom: $0, nil) } ?? []
    }

    /// Whom it belongs to while `origin`, which clients may name, is asked at `address`.
    func holders(fetchingFrom origin: OriginAuthority, _ address: IPAddress?) -> [QuotaHolder] {
        [QuotaHolder(ownerOf: origin)] + (address.map { [QuotaHolder(originAt: $0)] } ?? [])
            + (client.map { [$0] } ?? [])
    }
}
