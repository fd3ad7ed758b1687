/// What an operator wants of the node as a whole.
enum OperatorCommand: Hashable, Sendable {
    /// Own nothing any more and hand over what is kept; then go on to run, or stop.
    case drain(stops: Bool)
    /// Own again.
    case undrain
}
