import Ground
import NIOCore
import Wire

extension Door {
    /// The hall has other settings now: time limits that run are as if they had run so from their
    /// start, and the next request is read with the new limits.
    ///
    /// A head of which a part was read, and a request whose body is under way, keep the limits they
    /// began with: their bytes are read twice, and must mean the same.
    func adopt(after old: NodeSettings) {
        hasOldLimits = parser.limits != settings.headLimits
        if remote == "-", hall.hasAccessLog, let context { noteRemote(of: context.channel) }
        switch phase {
        case .idle: move(&deadline, from: old.idleTimeout, to: settings.idleTimeout)
        case .head: move(&deadline, from: old.headTimeout, to: settings.headTimeout)
        case .body: move(&deadline, from: old.bodyTimeout, to: settings.bodyTimeout)
        case .answering, .ending, .lingering, .closed: break
        }
        if congestedBytes != nil {
            move(&sendDeadline, from: old.sendTimeout, to: settings.sendTimeout)
        }
    }

    /// Called when the next thing to be read is a request's head or the rest of one.
    func adoptLimits() {
        guard phase == .idle else { return }
        parser = RequestParser(limits: settings.headLimits)
        hasOldLimits = false
    }

    private func move(_ deadline: inout Instant, from old: Interval, to new: Interval) {
        deadline = deadline + Interval(nanoseconds: new.nanoseconds - old.nanoseconds)
    }
}
