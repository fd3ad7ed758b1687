package import Ground

/// How a node goes, step by step: it answers nobody any more before anybody stops waiting for its
/// word.
///
/// Every step is over when what it is for is done, or when its time is; the shell knows both.
package enum Departure: Hashable, Sendable {
    /// Accepts no more requests, and gives the answers that are begun.
    case closing
    /// Ends the answers that took too long.
    case breakingOff
    /// Has the others count it no longer; nobody proves it current from now on.
    case leaving
    /// Tells everybody that it goes.
    case parting
    case gone

    /// The step after this one; `isQuiet`: nobody is being answered.
    package func next(isQuiet: Bool) -> Departure {
        switch self {
        case .closing: isQuiet ? .leaving : .breakingOff
        case .breakingOff: .leaving
        case .leaving: .parting
        case .parting, .gone: .gone
        }
    }

    /// How long the others are waited for; nil where it is not for this machine to say.
    ///
    /// To be forgotten several records have to be synced at a majority, whose disks may be busy;
    /// those that stay may be fenced for good if it does not come about.
    package var timeMax: Interval? {
        switch self {
        case .leaving: .seconds(10)
        case .parting: .seconds(2)
        case .closing, .breakingOff, .gone: nil
        }
    }
}
