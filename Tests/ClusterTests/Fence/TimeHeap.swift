import Ground

/// The instants at which something happens, the next one first.
struct TimeHeap {
    private var instants: [Instant] = []

    var first: Instant? { instants.first }

    mutating func insert(_ instant: Instant) {
        instants.append(instant)
        var child = instants.count - 1
        while child > 0, instants[child] < instants[(child - 1) / 2] {
            instants.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    mutating func removeFirst() {
        instants.swapAt(0, instants.count - 1)
        instants.removeLast()
        var parent = 0
        while true {
            let children = [2 * parent + 1, 2 * parent + 2].filter { $0 < instants.count }
            guard let least = children.min(by: { instants[$0] < instants[$1] }),
                instants[least] < instants[parent]
            else { return }
            instants.swapAt(least, parent)
            parent = least
        }
    }
}
