package lab_test

import (
	"testing"

	"github.com/wso2/terraform-provider-dbaas/tools/lab/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }
