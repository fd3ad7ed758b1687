import Ground
import NIOCore
import Telemetry
import Wire

/// Connections that a load balancer passes on, which says first whose they are.
extension Door {
    /// True if the connection comes from a proxy that the operator trusts.
    func isFromTrustedProxy(_ channel: any Channel) -> Bool {
        let trusted = settings.trustedProxies
        guard side == .data, !trusted.isEmpty,
            let address = channel.remoteAddress?.ipAddress.flatMap({ IPAddress($0) })
        else { return false }
        return trusted.contains { $0.contains(address) }
    }

    /// Reads the header that such a connection begins with.
    ///
    /// Gives the offset behind it, 0 while it has not come in full, or nil if the connection was
    /// closed because there is none.
    func readProxyHeader(_ bytes: Span<UInt8>, now: Instant) -> Int? {
        switch ProxyProtocol.read(bytes) {
        case .needsMore:
            if phase == .idle { deadline = now + settings.headTimeout }
            phase = .head
            return 0
        case .source(let source, let end):
            awaitsProxyHeader = false
            phase = .idle
            deadline = now + settings.idleTimeout
            proxied = source?.address
            if let source { remote = "\(source.address)" }
            return end
        case .refused:
            hall.counters.add(.requestsMalformed)
            breakOff()
            return nil
        }
    }
}
