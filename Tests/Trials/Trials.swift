import Foundation

/// The number of trials in a test: random cases, seeds, steps, or the length of its input.
///
/// Tests give the number for an optimised build. A debug build is about ten times slower and runs a
/// sixteenth of them, so that `deploy/test unit` takes about a minute; `NUTHATCH_LONG=1` requests a
/// campaign.
package enum Trials {
    /// True if a campaign is requested.
    package static let isCampaign = ProcessInfo.processInfo.environment["NUTHATCH_LONG"] == "1"

    /// True in a debug build, unless a campaign is requested.
    ///
    /// Tests that prove nothing with a sixteenth of their trials, or take minutes, are skipped
    /// then.
    package static var isReduced: Bool {
        #if DEBUG
            !isCampaign
        #else
            false
        #endif
    }

    /// The number of trials for a usual number `usual`, and `long` in a campaign.
    package static func count(_ usual: Int, long: Int? = nil) -> Int {
        if isCampaign { return long ?? usual }
        return isReduced ? (usual + 15) / 16 : usual
    }

    /// The seeds for the usual seeds `usual`; in a campaign they end with `long`.
    package static func seeds(
        _ usual: ClosedRange<UInt64>, long: UInt64? = nil
    ) -> ClosedRange<UInt64> {
        let count = count(usual.count, long: long.map { Int($0 - usual.lowerBound) + 1 })
        return usual.lowerBound...usual.lowerBound + UInt64(count - 1)
    }

    /// The distance between the steps that are tried, for every `usual`th in an optimised build.
    package static func stride(_ usual: Int) -> Int {
        isCampaign ? 1 : isReduced ? usual * 16 : usual
    }
}
