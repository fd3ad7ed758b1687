import NIOCore

/// Those who wait for a turn of the loop: of each holder one after the other (round robin), so that
/// whoever sends much at once keeps others waiting for one of its requests, not for all.
package struct FairQueue<Holder: Hashable, Element> {
    private var lines: [Holder: CircularBuffer<Element>] = [:]
    /// Holders with somebody in `lines`, the next one first.
    private var order: CircularBuffer<Holder> = []

    package init() {}

    package var isEmpty: Bool { order.isEmpty }

    package mutating func append(_ element: Element, of holder: Holder) {
        if lines[holder] == nil { order.append(holder) }
        lines[holder, default: []].append(element)
    }

    /// Whose turn it is; nil if nobody waits.
    package mutating func next() -> Element? {
        guard let holder = order.popFirst(), let element = lines[holder]?.popFirst() else {
            return nil
        }
        if lines[holder]?.isEmpty == true {
            lines[holder] = nil
        } else {
            order.append(holder)
        }
        return element
    }
}
