import Cluster

/// S3-FIFO (Yang, Zhang, Qiu, Yue, Rashmi, SOSP 2023), with sizes counted in bytes.
///
/// Keys are 0..<`keys`. New objects enter the small queue (a tenth of the bytes). At its end, those
/// hit twice move to the main queue; the others are evicted into the ghost queue (as many bytes as
/// the main queue's). A new object found in the ghost queue enters the main queue. The main queue
/// gives an entry one more round per hit, at most three. An object at least as large as the small
/// queue is never admitted, as it could not get into the ghost queue.
package struct S3FIFOEvictionPolicy: EvictionPolicy {
    private enum Location: UInt8 { case none, small, main }

    private let capacityBytes: Int
    private let smallBytesMax: Int
    private let ghostBytesMax: Int
    private var small = FIFOQueue<Int>()
    private var main = FIFOQueue<Int>()
    private var ghost = FIFOQueue<Int>()
    private var smallBytes = 0
    private var mainBytes = 0
    private var ghostBytes = 0
    private var locations: [Location]
    private var hits: [Int]
    private var sizes: [Int]
    /// The number of a key's slots in the ghost queue that are void, as the key has left it.
    private var ghostWithdrawals: [Int]
    private var isGhost: [Bool]

    /// Creates an empty cache of `capacityBytes`.
    package init(capacityBytes: Int, keys: Int) {
        self.capacityBytes = capacityBytes
        smallBytesMax = capacityBytes / 10
        ghostBytesMax = capacityBytes * 9 / 10
        locations = Array(repeating: .none, count: keys)
        hits = Array(repeating: 0, count: keys)
        sizes = hits
        ghostWithdrawals = hits
        isGhost = Array(repeating: false, count: keys)
    }

    /// Returns true for a hit; otherwise admits the object according to the policy.
    package mutating func request(_ key: UInt32, size: Int) -> Bool {
        let key = Int(key)
        if locations[key] != .none {
            hits[key] += 1
            return true
        }
        guard size <= capacityBytes else { return false }
        sizes[key] = size
        let returns = isGhost[key]
        if returns {
            isGhost[key] = false
            ghostWithdrawals[key] += 1
            ghostBytes -= size
        }
        guard returns || size < smallBytesMax else { return false }
        while smallBytes + mainBytes + size > capacityBytes {
            if mainBytes > capacityBytes - smallBytesMax || small.isEmpty {
                evictFromMain()
            } else {
                evictFromSmall()
            }
        }
        hits[key] = 0
        if returns { pushMain(key) } else { pushSmall(key) }
        return false
    }

    /// Adds a key to the small queue.
    private mutating func pushSmall(_ key: Int) {
        locations[key] = .small
        smallBytes += sizes[key]
        small.append(key)
    }

    /// Adds a key to the main queue.
    private mutating func pushMain(_ key: Int) {
        locations[key] = .main
        mainBytes += sizes[key]
        main.append(key)
    }

    /// Evicts the oldest entry of the small queue that was not hit twice; older ones move to the
    /// main queue.
    private mutating func evictFromSmall() {
        while let key = small.takeFirst() {
            smallBytes -= sizes[key]
            guard hits[key] < 2 else {
                hits[key] = 0
                pushMain(key)
                continue
            }
            locations[key] = .none
            pushGhost(key)
            return
        }
    }

    /// Evicts the oldest entry of the main queue without hits; older ones get another round.
    private mutating func evictFromMain() {
        while let key = main.takeFirst() {
            mainBytes -= sizes[key]
            guard hits[key] > 0 else {
                locations[key] = .none
                return
            }
            hits[key] = min(hits[key], 3) - 1
            pushMain(key)
        }
    }

    /// Adds a key to the ghost queue, unless it exceeds it, and drops the oldest keys beyond its
    /// size.
    private mutating func pushGhost(_ key: Int) {
        guard sizes[key] <= ghostBytesMax else { return }
        isGhost[key] = true
        ghost.append(key)
        ghostBytes += sizes[key]
        while ghostBytes > ghostBytesMax, let oldest = ghost.takeFirst() {
            guard ghostWithdrawals[oldest] == 0 else {
                ghostWithdrawals[oldest] -= 1
                continue
            }
            isGhost[oldest] = false
            ghostBytes -= sizes[oldest]
        }
    }
}
