import Telemetry

/// Where a node is asked by operators, as its settings say it.
enum OperatorPlace: Hashable {
    /// `tokenFile` holds what operators prove themselves with; nil if they need not.
    case address(ListenAddress, tokenFile: String?)
    /// Nowhere.
    case off
    /// It speaks TLS, with those alone who show a certificate.
    case wantsCertificate
    /// Its port is not known beforehand.
    case chosenByKernel
}
