extension Goodbye {
    /// What is said to a peer whose connection is closed for `reason`.
    package init(_ reason: CloseReason) {
        switch reason {
        case .redundant: self.init(.superseded, "another connection between the two is used")
        case .selfDial: self.init(.ownProcess, "this is the process that dialled")
        case .silent: self.init(.silent, "no answer to a ping")
        case .dead: self.init(.believedDead, "believed dead, dialled anew")
        case .superseded: self.init(.newerProcess, "a newer process of the node is here")
        case .duplicateIdentity:
            self.init(.duplicateIdentity, "another live process has the same node id")
        case .clusterFull: self.init(.clusterFull, "the cluster has all the members it may have")
        case .leaving: self.init(.leaving, "the node has left")
        }
    }
}

extension CloseReason {
    /// Why the peer closed the connection, as far as membership has to know; nil for faults, which
    /// are as good as a break.
    package init?(_ code: Goodbye.Code) {
        switch code {
        case .superseded: self = .redundant
        case .ownProcess: self = .selfDial
        case .silent: self = .silent
        case .believedDead: self = .dead
        case .newerProcess: self = .superseded
        case .duplicateIdentity: self = .duplicateIdentity
        case .clusterFull: self = .clusterFull
        case .leaving: self = .leaving
        default: return nil
        }
    }
}
