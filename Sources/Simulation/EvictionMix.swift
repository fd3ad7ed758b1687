internal import Foundation
internal import Ground

/// Synthetic request traces with what recorded ones have little of: objects of up to 64 MiB.
///
/// Popularity is Zipf's, sizes are log-normal, with a Pareto tail. The same trace every time, but
/// for the last bits of what `exp` and `log` give.
package enum SyntheticTrace: String, CaseIterable, Sendable {
    /// A site's images and some downloads: 300,000 requests, 15 % of them for what nobody asks for
    /// again; three objects in a hundred are in the tail.
    case webMix = "web-mix"
    /// A working set of 20,000 images, and every 500th request for an object of 16 to 64 MiB that
    /// nobody has asked for before or will again.
    case largeNewcomers = "large-newcomers"

    private static let requestCount = 300_000
    private static let objectBytesMax = 64 << 20

    /// The trace.
    package var trace: EvictionTrace {
        var trace = EvictionTrace(name: rawValue)
        var dice = SplitMix64(seed: self == .webMix ? 11 : 12)
        let ranks = Ranks(
            count: self == .webMix ? 80_000 : 20_000, exponent: self == .webMix ? 0.8 : 0.9)
        for number in 0..<Self.requestCount {
            let isOnce =
                self == .webMix
                ? Double.random(in: 0..<1, using: &dice) < 0.15 : number % 500 == 499
            let key = isOnce ? UInt64(ranks.count + number) : UInt64(ranks.draw(&dice))
            // Sizes have dice of their own: whoever asks first, a key has one size.
            var sizeDice = SplitMix64(seed: key)
            trace.append(key: key, size: size(isOnce: isOnce, &sizeDice))
        }
        return trace
    }

    private func size(isOnce: Bool, _ dice: inout SplitMix64) -> Int {
        switch self {
        case .webMix:
            let isInTail = Double.random(in: 0..<1, using: &dice) < 0.03
            let bytes =
                isInTail
                ? 150_000 / pow(Double.random(in: 0x1p-40..<1, using: &dice), 1 / 1.1)
                : Self.logNormal(median: 12_000, deviation: 1.5, &dice)
            return Int(min(max(200, bytes), Double(Self.objectBytesMax)))
        case .largeNewcomers:
            guard !isOnce else { return Int.random(in: 16 << 20...64 << 20, using: &dice) }
            let bytes = Self.logNormal(median: 12_000, deviation: 1, &dice)
            return Int(min(max(200, bytes), 256 * 1024))
        }
    }

    /// A draw from the log-normal distribution (Box and Muller's way to a normal one).
    private static func logNormal(
        median: Double, deviation: Double, _ dice: inout SplitMix64
    ) -> Double {
        let radius = (-2 * log(Double.random(in: 0x1p-40..<1, using: &dice))).squareRoot()
        let angle = 2 * Double.pi * Double.random(in: 0..<1, using: &dice)
        return median * exp(deviation * radius * cos(angle))
    }

    /// Ranks of which the n-th is drawn with a weight of n^-exponent.
    private struct Ranks {
        /// The sum of the weights up to each rank.
        private var sums: [Double] = []

        init(count: Int, exponent: Double) {
            var sum = 0.0
            for rank in 1...count {
                sum += pow(Double(rank), -exponent)
                sums.append(sum)
            }
        }

        var count: Int { sums.count }

        func draw(_ dice: inout SplitMix64) -> Int {
            let wanted = Double.random(in: 0..<(sums.last ?? 1), using: &dice)
            var (low, high) = (0, sums.count - 1)
            while low < high {
                let middle = (low + high) / 2
                if sums[middle] > wanted { high = middle } else { low = middle + 1 }
            }
            return low
        }
    }
}
