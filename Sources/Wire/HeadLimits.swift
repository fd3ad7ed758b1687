/// How large a message head may be; past a limit the message is refused, whatever it says.
package struct HeadLimits: Hashable, Sendable {
    /// Bytes from the first byte of the first line to the empty line and its CR LF; 431 past it.
    package var headBytesMax: Int
    /// Bytes of the request target; 414 past it.
    ///
    /// The default leaves 1 KiB around a URL of 8 KiB.
    package var targetBytesMax: Int
    /// Field lines; 431 past it.
    package var fieldsMax: Int

    package init(
        headBytesMax: Int = 32 * 1024, targetBytesMax: Int = 9 * 1024, fieldsMax: Int = 100
    ) {
        self.headBytesMax = headBytesMax
        self.targetBytesMax = targetBytesMax
        self.fieldsMax = fieldsMax
    }

    /// What a request line may hold beside its target: method, version, spaces and line end.
    static let requestLineOverheadBytes = 64
}
