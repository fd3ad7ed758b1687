package import Ground
package import HTTPRules

/// Where a field line lies, as it is kept while a head is read.
///
/// Plain numbers, because the initialisers of ``FieldLine`` and ``Extent`` are calls into other
/// targets, which most lines never need.
struct FieldLineLocation {
    var id: FieldName
    var nameStart: UInt32
    var nameCount: UInt32
    var valueStart: UInt32
    var valueCount: UInt32

    var line: FieldLine {
        FieldLine(
            id: id, name: Extent(start: Int(nameStart), count: Int(nameCount)),
            value: valueExtent)
    }

    var valueExtent: Extent { Extent(start: Int(valueStart), count: Int(valueCount)) }

    var value: Range<Int> {
        Int(valueStart)..<Int(valueStart) &+ Int(valueCount)
    }
}

/// The field lines of one head at a time, in the order received; room for them is made once.
///
/// Sendable because nothing else holds the memory that it owns.
@safe
package struct FieldTable: ~Copyable, @unchecked Sendable {
    /// The lines; only the first ``count`` of them belong to the present head and are to be read.
    ///
    /// Memory of its own, because an array asks at each line whether it is shared.
    private let locations: UnsafeMutablePointer<FieldLineLocation>
    private let capacity: Int
    /// Lines of the present head.
    package private(set) var count = 0
    /// One bit for each name that occurs, numbered by raw value.
    private(set) var bits: UInt64 = 0

    /// Makes room for `fieldsMax` lines.
    package init(fieldsMax: Int) {
        precondition(fieldsMax >= 0)
        capacity = fieldsMax
        unsafe locations = .allocate(capacity: fieldsMax)
    }

    deinit {
        unsafe locations.deallocate()
    }

    /// The names that occur; ``FieldName/other`` stands for all that have no case of their own.
    package var present: FieldSet { FieldSet(bits: bits) }

    /// The line at `index`, which must be less than ``count``.
    package subscript(index: Int) -> FieldLine {
        precondition(index < count)
        return unsafe locations[index].line
    }

    /// The value of the first line with this name.
    package func first(_ name: FieldName) -> Extent? {
        guard contains(name) else { return nil }
        for index in 0..<count where unsafe locations[index].id == name {
            return unsafe locations[index].valueExtent
        }
        return nil
    }

    /// True if a line has this name.
    @inline(__always)
    package func contains(_ name: FieldName) -> Bool {
        bits & Self.bit(name) != 0
    }

    /// A copy of the lines, for those who keep them.
    package func copy() -> [FieldLine] {
        (0..<count).map { index in self[index] }
    }

    @inline(__always)
    mutating func removeAll() {
        count = 0
        bits = 0
    }

    /// False if there is no room left.
    @inline(__always)
    mutating func append(_ mark: FieldLineLocation) -> Bool {
        guard count < capacity else { return false }
        unsafe locations.advanced(by: count).initialize(to: mark)
        count &+= 1
        bits |= Self.bit(mark.id)
        return true
    }

    /// The bit of a name in ``FieldSet``.
    ///
    /// The raw values count up from 0 in the order of the cases, so the case's own byte is the raw
    /// value; the raw value proper would be a call into another target for each line.
    @inline(__always)
    private static func bit(_ name: FieldName) -> UInt64 {
        1 &<< UInt64(unsafe unsafeBitCast(name, to: UInt8.self))
    }
}
