/// A request target cut at its first question mark.
struct SplitTarget {
    var path: ArraySlice<UInt8>
    /// Behind the question mark; nil if there is none.
    var query: ArraySlice<UInt8>?

    init(_ target: ArraySlice<UInt8>) {
        let mark = target.firstIndex(of: UInt8(ascii: "?"))
        path = target[..<(mark ?? target.endIndex)]
        query = mark.map { target[($0 + 1)...] }
    }

    /// One parameter of a query; both parts as they were sent.
    struct Parameter {
        var name: ArraySlice<UInt8>
        /// Empty if there is no equals sign, too.
        var value: ArraySlice<UInt8>

        init(_ text: ArraySlice<UInt8>) {
            let equals = text.firstIndex(of: UInt8(ascii: "=")) ?? text.endIndex
            name = text[..<equals]
            value = text[equals...].dropFirst()
        }
    }

    /// The parameters of the query, in their order.
    var parameters: [Parameter] {
        guard let query else { return [] }
        return query.split(separator: UInt8(ascii: "&")).map(Parameter.init)
    }

    /// The same target without `mount`, a path without a slash at its end, before its path; nil if
    /// the path is not below it.
    func removingPrefix(_ mount: [UInt8]) -> SplitTarget? {
        guard path.starts(with: mount) else { return nil }
        var parts = self
        parts.path = path.dropFirst(mount.count)
        guard parts.path.isEmpty || parts.path.first == UInt8(ascii: "/") else { return nil }
        return parts
    }
}
