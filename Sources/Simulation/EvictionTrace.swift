/// A trace made ready for replay: keys numbered 0, 1, 2 … in order of appearance.
///
/// A key has one size, the largest it is seen with, so that every policy faces the same footprint.
package struct EvictionTrace: Sendable {
    package let name: String
    /// The key of each request.
    package private(set) var requests: [UInt32] = []
    /// The size in bytes of each key.
    package private(set) var sizes: [Int] = []
    private var numbers: [UInt64: UInt32] = [:]

    package init(name: String) {
        self.name = name
    }

    /// Adds a request for `key`, an object of `size` bytes.
    package mutating func append(key: UInt64, size: Int) {
        guard let number = numbers[key] else {
            let number = UInt32(sizes.count)
            numbers[key] = number
            sizes.append(size)
            requests.append(number)
            return
        }
        sizes[Int(number)] = max(sizes[Int(number)], size)
        requests.append(number)
    }

    /// The sum of all distinct keys' sizes in bytes.
    package var footprintBytes: Int {
        sizes.reduce(0, +)
    }

    /// `percent` of the footprint, rounded down, in bytes.
    package func capacityBytes(percent: Double) -> Int {
        Int(Double(footprintBytes) * percent / 100)
    }
}
