extension Goodbye {
    /// What is said to a peer whose connection is closed for `reason`.
    package init(_ reason: CloseReason) {
        let text =
            switch reason {
            case .redundant: "another connection between the two is used"
            case .selfDial: "this is the process that dialled"
            case .silent: "no answer to a ping"
            case .dead: "believed dead, dialled anew"
            case .superseded: "a newer process of the node is here"
            case .duplicateIdentity: "another live process has the same node id"
            case .clusterFull: "the cluster has all the members it may have"
            case .leaving: "the node has left"
            }
        self.init(Code(rawValue: reason.rawValue), text)
    }
}

extension CloseReason {
    /// Why the peer closed the connection, as far as membership has to know; nil for faults, which
    /// are as good as a break.
    package init?(_ code: Goodbye.Code) {
        self.init(rawValue: code.rawValue)
    }
}
