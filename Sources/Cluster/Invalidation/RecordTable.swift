import Ground

/// The records of one stream that are held, by number.
///
/// Up to 256 records lie in a page with their bytes in one array, so that a million small records
/// are some thousand arrays. Most come in order; those that do not are put in their place.
struct RecordTable: Sendable {
    /// A record without its bytes.
    struct Slot: Sendable {
        let number: UInt64
        /// Where its content lies in its page.
        fileprivate let content: Range<UInt32>
        let hash: UInt64
        /// What the count of invalidations applied was with it.
        let count: UInt64
        /// When it came.
        let heldSince: Instant

        fileprivate var extent: Range<Int> { Int(content.lowerBound)..<Int(content.upperBound) }
    }

    private struct Page: Sendable {
        let index: UInt64
        var bytes: [UInt8] = []
        /// Ascending by number.
        var slots: [Slot] = []

        func content(of slot: Int) -> [UInt8] {
            Array(bytes[slots[slot].extent])
        }
    }

    /// Ascending by index; none is empty.
    private var pages: [Page] = []
    private(set) var count = 0
    /// Of contents, with ``slotBytes`` for each.
    private(set) var bytesCount = 0

    /// What a record takes beside its content.
    static let slotBytes = 64

    var isEmpty: Bool { count == 0 }
    var first: Slot? { pages.first?.slots.first }

    /// Adds a record, whose number must not be held.
    mutating func insert(_ record: InvalidationRecord, count: UInt64, at now: Instant) {
        let number = record.id.number
        let index = number >> 8
        let place = pages.partitionPoint { $0.index < index }
        if place == pages.count || pages[place].index != index {
            pages.insert(Page(index: index), at: place)
        }
        let start = UInt32(pages[place].bytes.count)
        let slot = Slot(
            number: number, content: start..<(start + UInt32(record.content.count)),
            hash: record.hash, count: count, heldSince: now)
        pages[place].bytes += record.content
        let position = pages[place].slots.partitionPoint { $0.number < number }
        pages[place].slots.insert(slot, at: position)
        self.count += 1
        bytesCount += record.content.count + Self.slotBytes
    }

    /// The record of this number, without its bytes; nil if it is not held.
    func slot(_ number: UInt64) -> Slot? {
        guard let (page, slot) = location(of: number) else { return nil }
        return pages[page].slots[slot]
    }

    /// Of those whose content is wanted the slots of the greatest numbers, at most `countMax`,
    /// descending.
    func last(_ countMax: Int, where isWanted: (Span<UInt8>) -> Bool) -> [Slot] {
        var found: [Slot] = []
        for page in pages.reversed() {
            for slot in page.slots.reversed() {
                guard found.count < countMax else { return found }
                if isWanted(page.bytes.span.extracting(slot.extent)) { found.append(slot) }
            }
        }
        return found
    }

    /// The content of the record of this number; nil if it is not held.
    func content(_ number: UInt64) -> [UInt8]? {
        guard let (page, slot) = location(of: number) else { return nil }
        return pages[page].content(of: slot)
    }

    /// The least number in `range` that is held; nil if none is.
    func firstNumber(in range: ClosedRange<UInt64>) -> UInt64? {
        var page = pages.partitionPoint { $0.index < range.lowerBound >> 8 }
        while page < pages.count {
            let slot = pages[page].slots.partitionPoint { $0.number < range.lowerBound }
            if slot < pages[page].slots.count {
                let number = pages[page].slots[slot].number
                return number <= range.upperBound ? number : nil
            }
            page += 1
        }
        return nil
    }

    /// Takes the record with the least number away and gives its content.
    mutating func removeFirst() -> (number: UInt64, content: [UInt8])? {
        guard let slot = first else { return nil }
        let content = pages[0].content(of: 0)
        pages[0].slots.removeFirst()
        if pages[0].slots.isEmpty { pages.removeFirst() }
        count -= 1
        bytesCount -= content.count + Self.slotBytes
        return (slot.number, content)
    }

    private func location(of number: UInt64) -> (page: Int, slot: Int)? {
        let page = pages.partitionPoint { $0.index < number >> 8 }
        guard page < pages.count, pages[page].index == number >> 8 else { return nil }
        let slot = pages[page].slots.partitionPoint { $0.number < number }
        guard slot < pages[page].slots.count, pages[page].slots[slot].number == number else {
            return nil
        }
        return (page, slot)
    }
}
