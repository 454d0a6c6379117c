"""Who signs people in: the deployment's user pool, or an issuer that the organization brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import RemovalPolicy
from aws_cdk import aws_cognito as cognito
from constructs import Construct

from infra.constructs.exceptions import accept
from infra.deployment import TokenIssuer

if TYPE_CHECKING:
    from infra.deployment import Deployment


class UserPool(Construct):
    """Accounts made by an administrator, who sign in with e-mail and password; one group of platform admins."""

    def __init__(self, scope: Construct, id_: str, *, deployment: Deployment) -> None:
        super().__init__(scope, id_)
        self._pool = self._make_pool(ephemeral=deployment.ephemeral)
        self._client = self._pool.add_client(
            "Client",
            auth_flows=cognito.AuthFlow(user_password=True),
            disable_o_auth=True,
            generate_secret=False,
            prevent_user_existence_errors=True,
        )
        self._pool.add_group("PlatformAdmins", group_name=deployment.admin_group)
        accept(
            self._pool, "AwsSolutions-COG2", because="MFA is offered, not forced: command lines sign in too."
        )
        accept(
            self._pool, "AwsSolutions-COG8", because="Threat protection is a paid plan: an admin's choice."
        )

    def _make_pool(self, *, ephemeral: bool) -> cognito.UserPool:
        return cognito.UserPool(
            self,
            "Pool",
            self_sign_up_enabled=False,
            sign_in_aliases=cognito.SignInAliases(email=True),
            account_recovery=cognito.AccountRecovery.EMAIL_ONLY,
            mfa=cognito.Mfa.OPTIONAL,
            mfa_second_factor=cognito.MfaSecondFactor(otp=True, sms=False),
            password_policy=cognito.PasswordPolicy(
                min_length=12,
                require_digits=True,
                require_lowercase=True,
                require_symbols=True,
                require_uppercase=True,
            ),
            deletion_protection=not ephemeral,
            removal_policy=RemovalPolicy.DESTROY if ephemeral else RemovalPolicy.RETAIN,
        )

    @property
    def pool_id(self) -> str:
        return self._pool.user_pool_id

    @property
    def client_id(self) -> str:
        return self._client.user_pool_client_id

    @property
    def issuer(self) -> TokenIssuer:
        """As the pool's tokens name it."""
        return TokenIssuer(self._pool.user_pool_provider_url, (self.client_id,))
