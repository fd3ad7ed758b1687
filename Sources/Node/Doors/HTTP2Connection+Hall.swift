import Ground
import NIOCore
import Telemetry
import Wire

/// The connection as its hall deals with it.
extension HTTP2Connection: ClientConnection {
    func ticked(_ now: Instant) {
        if congestion.isOn, !congestion.takesSomething(bufferedBytes, now, settings) {
            hall.counters.add(.timeoutsSend)
            return breakOff()
        }
        guard phase == .open else {
            if phase == .lingering, now >= deadline { close() }
            return
        }
        for stream in session.streams { exchange(of: stream)?.ticked(now) }
        session.noteStalls(now: now)
        for stream in session.stalledStreams(since: now - settings.sendTimeout) {
            hall.counters.add(.timeoutsSend)
            exchange(of: stream)?.isTakenBack()
            session.reset(stream, .cancel)
        }
        if let drainingSince, drainingSince + Self.farewell <= now, session.openStreamCount == 0 {
            // The client has not answered; it may be gone.
            session.shutDownGracefully()
        }
        if isHeadLate(now) {
            hall.counters.add(.timeoutsHead)
            session.goAway(.enhanceYourCalm)
        } else if let since = session.connectionStalledSince, since + settings.sendTimeout <= now {
            hall.counters.add(.timeoutsSend)
            session.goAway(.enhanceYourCalm)
        } else if session.openStreamCount == 0, now >= deadline, !congestion.isOn {
            hall.counters.add(.timeoutsIdle)
            session.goAway(.noError)
        }
        flush()
    }

    /// True if a request's head is not whole for longer than it may take.
    private func isHeadLate(_ now: Instant) -> Bool {
        guard session.streams.contains(where: { !$0.isAnnounced }) else {
            headSince = nil
            return false
        }
        let since = headSince ?? now
        headSince = since
        return since + settings.headTimeout <= now
    }

    var idleSince: Instant? {
        guard queuedBytes == 0 else { return nil }
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

    func adopt(after old: NodeSettings) {
        deadline.move(from: old.idleTimeout, to: settings.idleTimeout)
        congestion.adopt(settings, after: old)
        if client?.remote == "-", hall.hasAccessLog { client?.note() }
    }
}

extension Hall {
    /// One that no stream uses.
    func takeExchange() -> HTTP2Exchange {
        exchanges.popLast() ?? HTTP2Exchange(on: self)
    }

    /// The stream is over.
    func keep(_ exchange: HTTP2Exchange) {
        if !isStopped, exchanges.count < Self.exchangesMax { exchanges.append(exchange) }
    }

    /// Kept for later streams.
    private static let exchangesMax = 256
}
