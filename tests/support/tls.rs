//! A certificate authority of the tests, and a certificate of it for `localhost`.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig};
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;

/// The files of both; they live as long as the value.
pub(crate) struct TestTls {
    folder: TempDir,
}

impl TestTls {
    /// Makes both with the program `openssl`.
    pub(crate) fn make() -> Self {
        let folder = TempDir::new().expect("a folder");
        let run = |line: &str| {
            let mut command = Command::new("openssl");
            command.args(line.split(' ')).current_dir(folder.path());
            let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
            assert!(status.expect("openssl is installed").success(), "{line}");
        };
        const EC: &str = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
        run(&format!("req -x509 {EC} -keyout ca.key -out ca.pem -days 2 -subj /CN=authority"));
        run(&format!("req {EC} -keyout key.pem -out request.pem -subj /CN=localhost"));
        let names = "subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n";
        std::fs::write(folder.path().join("names"), names).expect("a file");
        run("x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem \
             -days 2 -extfile names");
        Self { folder }
    }

    /// The file of the authority's certificate, for `SSL_CERT_FILE`.
    pub(crate) fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// The certificates that a client trusts.
    pub(crate) fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_file(self.authority()).expect("a certificate");
        roots.add(authority).expect("a root");
        roots
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        let file = |name: &str| self.folder.path().join(name);
        let chain = vec![CertificateDer::from_pem_file(file("cert.pem")).expect("a certificate")];
        let key = PrivateKeyDer::from_pem_file(file("key.pem")).expect("a key");
        let config = ServerConfig::builder().with_no_client_auth();
        let config = config.with_single_cert(chain, key).expect("a pair");
        TlsAcceptor::from(Arc::new(config))
    }
}
