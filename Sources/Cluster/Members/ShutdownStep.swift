package import Ground

/// How a node goes, step by step: it answers nobody any more before anybody stops waiting for its
/// word.
///
/// Every step is over when what it is for is done, or when its time is; the shell knows both.
package enum ShutdownStep: Hashable, Sendable {
    /// Accepts no more requests, and gives the answers that are begun.
    case finishingRequests
    /// Ends the answers that took too long.
    case abortingResponses
    /// Has the others count it no longer; nobody proves it current from now on.
    case leavingVoterSet
    /// Tells everybody that it goes.
    case announcingLeave
    case stopped

    /// The step after this one; `isQuiet`: nobody is being answered.
    package func next(isIdle: Bool) -> ShutdownStep {
        switch self {
        case .finishingRequests: isIdle ? .leavingVoterSet : .abortingResponses
        case .abortingResponses: .leavingVoterSet
        case .leavingVoterSet: .announcingLeave
        case .announcingLeave, .stopped: .stopped
        }
    }

    /// How long the others are waited for; nil where it is not for this machine to say.
    ///
    /// To be forgotten several records have to be synced at a majority, whose disks may be busy;
    /// those that stay may be fenced for good if it does not come about.
    package var timeMax: Interval? {
        switch self {
        case .leavingVoterSet: .seconds(10)
        case .announcingLeave: .seconds(2)
        case .finishingRequests, .abortingResponses, .stopped: nil
        }
    }
}
