import Ground
import NIOCore
import Platform
import Telemetry
import Wire

/// Management by the event loop context.
extension HTTP2Connection: ClientConnection {
    func ticked(_ now: Instant) {
        if output.hasStalled(context, now, loopContext.settings.sendTimeout) {
            loopContext.counters.add(.timeoutsSend)
            return abort()
        }
        guard phase == .open else {
            if phase == .lingering, now >= deadline { close() }
            return
        }
        for stream in session.streams { exchange(of: stream)?.ticked(now) }
        session.updateStalls(now: now)
        for stream in session.stalledStreams(since: now - settings.sendTimeout) {
            loopContext.counters.add(.timeoutsSend)
            exchange(of: stream)?.responseAborted()
            session.reset(stream, .cancel)
        }
        if let drainingSince, drainingSince + Self.goAwayTimeout <= now,
            session.openStreamCount == 0
        {
            // The client has not closed the connection; it may be unreachable.
            session.shutDownGracefully()
        }
        if hasHeadTimedOut(now) {
            loopContext.counters.add(.timeoutsHead)
            session.goAway(.enhanceYourCalm)
        } else if let since = session.connectionStalledSince, since + settings.sendTimeout <= now {
            loopContext.counters.add(.timeoutsSend)
            session.goAway(.enhanceYourCalm)
        } else if session.openStreamCount == 0, now >= deadline, !output.stall.isActive {
            loopContext.counters.add(.timeoutsIdle)
            session.goAway(.noError)
        }
        flush()
    }

    /// Returns true if some request head was incomplete at each call for `headTimeout`; to be
    /// called at every tick.
    private func hasHeadTimedOut(_ now: Instant) -> Bool {
        guard session.streams.contains(where: { !$0.isHeadDelivered }) else {
            incompleteHeadSince = nil
            return false
        }
        let since = incompleteHeadSince ?? now
        incompleteHeadSince = since
        return since + settings.headTimeout <= now
    }

    /// Start of the time without open streams, or of lingering; `nil` while a stream is open or
    /// output is queued.
    var idleSince: Instant? {
        guard output.queuedBytes == 0 else { return nil }
        switch phase {
        case .open:
            return session.openStreamCount == 0 ? deadline - settings.idleTimeout : nil
        case .lingering: return deadline - settings.lingerTimeout
        case .ending, .closed: return nil
        }
    }

    func drain() {
        guard phase == .open else { return }
        drainingSince = SystemClock.now()
        session.shutDownGracefully()
        flush()
    }

    func settingsChanged(from old: NodeSettings) {
        deadline.shift(from: old.idleTimeout, to: settings.idleTimeout)
        output.stall.reconfigure(settings, after: old)
        if client?.remote == "-", loopContext.hasAccessLog { client?.recordRemoteAddress() }
    }
}

extension EventLoopContext {
    /// Returns an idle exchange, or a new one if there is none.
    func reuseExchange() -> HTTP2Exchange {
        idleExchanges.popLast() ?? HTTP2Exchange(on: self)
    }

    /// Keeps the exchange of a closed stream for later streams, unless there are enough.
    func recycle(_ exchange: HTTP2Exchange) {
        if !isStopped, idleExchanges.count < Self.exchangesMax { idleExchanges.append(exchange) }
    }

    /// Maximum number of idle exchanges kept.
    private static let exchangesMax = 256
}
