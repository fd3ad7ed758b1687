import Foundation

/// How many trials a test makes: random cases, seeds, steps, or the length of what it goes through.
///
/// A test names how many it makes in an optimised build. A debug build takes some ten times as long
/// for each and makes a sixteenth of them, so that `deploy/test unit` takes about a minute;
/// `NUTHATCH_LONG=1` asks for a campaign.
package enum Trials {
    /// True if a campaign is asked for.
    package static let isCampaign = ProcessInfo.processInfo.environment["NUTHATCH_LONG"] == "1"

    /// True in a debug build, unless a campaign is asked for.
    ///
    /// What proves nothing with a sixteenth of its trials, or takes minutes, is left out then.
    package static var isReduced: Bool {
        #if DEBUG
            !isCampaign
        #else
            false
        #endif
    }

    /// How many to make where a test names `usual`, and `long` for a campaign.
    package static func count(_ usual: Int, long: Int? = nil) -> Int {
        if isCampaign { return long ?? usual }
        return isReduced ? (usual + 15) / 16 : usual
    }

    /// The seeds to play where a test names `usual`; those of a campaign end with `long`.
    package static func seeds(
        _ usual: ClosedRange<UInt64>, long: UInt64? = nil
    ) -> ClosedRange<UInt64> {
        let count = count(usual.count, long: long.map { Int($0 - usual.lowerBound) + 1 })
        return usual.lowerBound...usual.lowerBound + UInt64(count - 1)
    }

    /// How far apart the steps are that are tried, of which a test tries every `usual`th.
    package static func stride(_ usual: Int) -> Int {
        isCampaign ? 1 : isReduced ? usual * 16 : usual
    }
}
