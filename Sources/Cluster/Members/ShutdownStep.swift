package import Ground

/// A step of a node's orderly shutdown.
///
/// The order ensures that the node serves no client any more before other nodes stop waiting for
/// its acknowledgements. A step ends when it is complete or when its time is over; the shell
/// decides both.
package enum ShutdownStep: Hashable, Sendable {
    /// Accept no more requests, and finish the responses in progress.
    case finishingRequests
    /// Abort the responses that took too long.
    case abortingResponses
    /// Leave the voter set; no other node proves this node current from now on.
    case leavingVoterSet
    /// Announce to all members that the node leaves.
    case announcingLeave
    case stopped

    /// Returns the step after this one; `isIdle` means that no response is in progress.
    package func next(isIdle: Bool) -> ShutdownStep {
        switch self {
        case .finishingRequests: isIdle ? .leavingVoterSet : .abortingResponses
        case .abortingResponses: .leavingVoterSet
        case .leavingVoterSet: .announcingLeave
        case .announcingLeave, .stopped: .stopped
        }
    }

    /// Maximum time of the step; `nil` where other code decides.
    ///
    /// Leaving the voter set requires several records synced at a majority, whose disks may be
    /// busy; without it the remaining nodes may be fenced for good.
    package var timeMax: Interval? {
        switch self {
        case .leavingVoterSet: .seconds(10)
        case .announcingLeave: .seconds(2)
        case .finishingRequests, .abortingResponses, .stopped: nil
        }
    }
}
